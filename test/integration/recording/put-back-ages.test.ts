/** The database is an old copy: it does not know the tags given since, and retention must not delete what somebody has tagged. */
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { Bus } from '../../../app/server/bus.ts'
import { PutBackAges } from '../../../app/server/put-back.ts'
import { Catalogue } from '../../../app/server/recording/index.ts'
import { MIGRATIONS, Store } from '../../../app/server/store/index.ts'
import { until } from '../../support/api.ts'
import { newRow } from '../../support/recordings.ts'
import { scratchFolder } from '../../support/scratch.ts'

const silent = pino({ level: 'silent' })
const NOW = Date.UTC(2026, 10, 1)
const KNOWN = MIGRATIONS.at(-1)?.version ?? 0

/** A store whose database is a copy with so many recordings. */
async function putBack(t: Test, recordings: number): Promise<Store> {
  const folder = scratchFolder(t, 'put-back-ages')
  const open = async (migrations = MIGRATIONS) => {
    const store = new Store(join(folder, 'db'), silent, migrations, join(folder, 'db-backups'))
    await store.start()
    return store
  }
  const old = await open()
  const catalogue = new Catalogue(old)
  old.transaction(() => {
    for (let n = 0; n < recordings; n++) catalogue.create(newRow(`${n}.mp4`, { state: n % 2 === 0 ? 'ready' : 'defect' }))
  })
  await old.stop()
  await (await open([...MIGRATIONS, { version: KNOWN + 1, summary: 'newer', run: () => {} }])).stop()
  const store = await open()
  t.teardown(() => store.stop())
  t.match(store.putBack, { schema: KNOWN })
  return store
}

const known = (ages: PutBackAges) =>
  until(
    () => ages.areKnown,
    (are) => are,
    'the ages',
  )

const agesOf = (catalogue: Catalogue) => [...new Set(catalogue.downFrom(1e9, 1e4).map(({ restored_at }) => restored_at))]

t.test('the age of all recordings begins anew, once', async (t) => {
  const store = await putBack(t, 1200)
  const catalogue = new Catalogue(store)
  const clock = { now: () => new Date(NOW), synchronised: true }
  const bus = new Bus()
  const ages = new PutBackAges(store, catalogue, clock, bus, silent)
  ages.start()
  t.notOk(ages.areKnown, 'others come in between')
  t.same(ages.limit({ retention_days: 30, max_usage: 80 }), { retention_days: 0, max_usage: 80 }, 'none is deleted for its age')
  await known(ages)
  t.same(ages.limit({ retention_days: 30 }), { retention_days: 30 })
  t.equal(catalogue.downFrom(1e9, 1e4).length, 1200)
  t.same(agesOf(catalogue), [NOW])
  t.same(store.putBack?.settled, ['ages'])
  await ages.stop()
  const later = new PutBackAges(store, catalogue, { ...clock, now: () => new Date(NOW + 1e6) }, bus, silent)
  later.start()
  t.ok(later.areKnown)
  t.same(agesOf(catalogue), [NOW])
  await later.stop()
})

t.test('without a clock nothing has an age until it is set', async (t) => {
  const store = await putBack(t, 3)
  const catalogue = new Catalogue(store)
  const bus = new Bus()
  const clock = { now: () => new Date(NOW), synchronised: false }
  const ages = new PutBackAges(store, catalogue, clock, bus, silent)
  ages.start()
  t.notOk(ages.areKnown)
  t.same(agesOf(catalogue), [undefined])
  store.putBackSettled('files')
  t.match(store.putBack, { settled: ['files'] }, 'the next start knows it too')
  bus.emit('clock-synchronised')
  await known(ages)
  t.same(agesOf(catalogue), [NOW])
  t.equal(store.putBack, undefined)
  await ages.stop()
  t.equal(bus.listenerCount('clock-synchronised'), 0)
})

t.test('where that cannot be written, no age is known until it can', async (t) => {
  const store = await putBack(t, 3)
  const catalogue = new Catalogue(store)
  let tries = 0
  const { restoreBatch } = catalogue
  catalogue.restoreBatch = (after, at) => {
    if (++tries < 3) throw new Error('No space left on device')
    return restoreBatch.call(catalogue, after, at)
  }
  const ages = new PutBackAges(store, catalogue, { now: () => new Date(NOW), synchronised: true }, new Bus(), silent, 5)
  ages.start()
  t.notOk(ages.areKnown)
  t.same(store.putBack?.settled ?? [], [])
  await known(ages)
  t.equal(tries, 3)
  t.same(agesOf(catalogue), [NOW])
  await ages.stop()
})

t.test('an end in the middle of it begins anew with the next start', async (t) => {
  const store = await putBack(t, 1200)
  const catalogue = new Catalogue(store)
  const clock = { now: () => new Date(NOW), synchronised: true }
  const ages = new PutBackAges(store, catalogue, clock, new Bus(), silent)
  ages.start()
  await ages.stop()
  t.notOk(ages.areKnown)
  t.same(store.putBack?.settled ?? [], [])
  t.same(agesOf(catalogue).sort(), [NOW, undefined], 'it had begun')
  const later = new PutBackAges(store, catalogue, clock, new Bus(), silent)
  later.start()
  await known(later)
  t.same(agesOf(catalogue), [NOW])
  await later.stop()
})
