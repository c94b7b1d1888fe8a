import pino from 'pino'
import t, { type Test } from 'tap'
import { actingAs } from '../../../app/server/actor.ts'
import { type AuditEntry, AuditLog } from '../../../app/server/audit/index.ts'
import { Bus } from '../../../app/server/bus.ts'
import { Store } from '../../../app/server/store/index.ts'
import { scratchFolder } from '../../support/scratch.ts'

const log = pino({ level: 'silent' })
const ALL = { limit: 1000, offset: 0 }

async function open(t: Test, folder = scratchFolder(t, 'audit'), maxEntries = 1000) {
  const store = new Store(folder, log)
  await store.start()
  const bus = new Bus()
  const audit = new AuditLog(store, bus, log, maxEntries)
  audit.start()
  const close = async () => {
    audit.stop()
    await store.stop()
  }
  t.teardown(close)
  return { folder, store, bus, audit, close }
}

t.test('deeds are kept with who and from where; what the device does by itself has no name', async (t) => {
  const { bus, audit } = await open(t)
  await actingAs({ username: 'eve', address: '10.0.0.9' }, async () => {
    await Promise.resolve()
    bus.publish('recording', 'deleted', { id: 4 })
  })
  bus.publish('auth', 'login_failed', { username: 'nobody', address: '10.0.0.1' })
  bus.publish('recording', 'stopped', { id: 5, reason: 'disk_full' })
  bus.publish('camera', 'no_signal', { camera: 0 })
  t.match(await audit.list(ALL), {
    total: 3,
    entries: [
      { seq: 3, action: 'recording.stopped', username: null, address: null, data: { reason: 'disk_full' } },
      { seq: 2, action: 'auth.login_failed', username: 'nobody', address: '10.0.0.1' },
      { seq: 1, action: 'recording.deleted', username: 'eve', address: '10.0.0.9', data: { id: 4 } },
    ],
  })
  t.equal((await audit.list({ ...ALL, action: 'auth' })).total, 1)
  t.equal((await audit.list({ ...ALL, action: 'recording.deleted' })).total, 1)
  t.equal((await audit.list({ ...ALL, username: 'eve' })).total, 1)
  t.equal((await audit.list({ ...ALL, to: 1 })).total, 0)
  t.match((await audit.list({ limit: 1, offset: 1 })).entries, [{ seq: 2 }])
})

t.test('the chain goes on over restarts, and shows a changed, a removed and an inserted entry', async (t) => {
  const first = await open(t)
  for (let i = 0; i < 5; i++) first.bus.publish('config', 'changed', { i })
  await first.close()
  const { store, bus, audit } = await open(t, first.folder)
  for (let i = 5; i < 10; i++) bus.publish('config', 'changed', { i })
  t.same(await audit.verify(), { entries: 10, broken_at: null })
  const table = store.table<number, AuditEntry>('audit')
  const original = table.get(4) as AuditEntry
  table.put(4, { ...original, data: { i: 99 } })
  t.equal((await audit.verify()).broken_at, 4)
  table.put(4, original)
  t.equal((await audit.verify()).broken_at, null)
  table.remove(7)
  t.equal((await audit.verify()).broken_at, 8)
})

t.test('the oldest go beyond the bound, the rest still holds', async (t) => {
  const { bus, audit } = await open(t, undefined, 10)
  for (let i = 0; i < 25; i++) bus.publish('config', 'changed', { i })
  t.same(await audit.verify(), { entries: 10, broken_at: null })
  t.equal((await audit.list(ALL)).entries.at(-1)?.seq, 16)
})

t.test('a filter looks at all entries, in turns with everything else', async (t) => {
  const { bus, audit } = await open(t, undefined, 20_000)
  for (let i = 0; i < 9000; i++) bus.publish('config', i % 3 === 0 ? 'changed' : 'kept', { i })
  await audit.list(ALL)
  let turns = 0
  let waiting: NodeJS.Immediate | undefined
  const count = () => {
    turns += 1
    waiting = setImmediate(count)
  }
  count()
  const { total, entries } = await audit.list({ limit: 2, offset: 1, action: 'config.changed' })
  clearImmediate(waiting)
  t.equal(total, 3000)
  t.same(
    entries.map(({ seq }) => seq),
    [8995, 8992],
  )
  t.ok(turns > 1, `${turns} turns of the others`)
})
