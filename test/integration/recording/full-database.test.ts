/** What the recordings' parts do while nothing can be written into the database, and afterwards. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate as immediate } from 'node:timers/promises'
import pino from 'pino'
import t, { type Test } from 'tap'
import { Bus, type ServerEvent } from '../../../app/server/bus.ts'
import { ApiError } from '../../../app/server/errors.ts'
import { DeviceStorage } from '../../../app/server/files/index.ts'
import { Finishing } from '../../../app/server/recording/finishing.ts'
import { Catalogue, type NewRow, Removal } from '../../../app/server/recording/index.ts'
import { Insistence } from '../../../app/server/recording/insistence.ts'
import { Active } from '../../../app/server/recording/slots.ts'
import { Store } from '../../../app/server/store/index.ts'
import { until } from '../../support/api.ts'
import { newRow } from '../../support/recordings.ts'
import { fillDisk, memoryDisk, scratchFolder } from '../../support/scratch.ts'

const silent = pino({ level: 'silent' })

/** A database that takes nothing while it is full, not even what is urgent. */
class FullStore extends Store {
  full = false
  override transaction<T>(work: () => T): T {
    this.check()
    return super.transaction(work)
  }

  override urgent<T>(work: () => T): T {
    this.check()
    return super.urgent(work)
  }

  private check(): void {
    if (this.full) throw new ApiError('INSUFFICIENT_STORAGE', 'The database is full')
  }
}

/** A medium that may be away. */
class Medium extends DeviceStorage {
  away = false
  override async reachable(): Promise<boolean> {
    return !this.away
  }
}

async function rig(t: Test) {
  const lines: string[] = []
  const log = pino({ level: 'error' }, { write: (line: string) => lines.push(String(JSON.parse(line).msg)) })
  const folder = scratchFolder(t, 'full')
  const store = new FullStore(join(folder, 'db'), silent)
  await store.start()
  const storage = new Medium(join(folder, 'media'))
  const bus = new Bus()
  const events: ServerEvent[] = []
  bus.on('event', (event) => events.push(event))
  const catalogue = new Catalogue(store)
  const removal = new Removal(store, catalogue, storage, bus, log)
  const insistence = new Insistence(log, 20)
  const finishing = new Finishing(catalogue, storage, bus, silent, insistence)
  t.teardown(async () => {
    insistence.stop()
    await removal.stop()
    await store.stop()
  })
  const add = (name: string, over: Partial<NewRow> = {}) => {
    const row = catalogue.create(newRow(name, over))
    const file = storage.hostPath(row.path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, 'x')
    return { row, file }
  }
  return { lines, store, storage, bus, events, catalogue, removal, finishing, insistence, add }
}

t.test('a recording is deleted although that cannot be noted, and its entry goes as soon as it can', async (t) => {
  const { store, catalogue, removal, events, add } = await rig(t)
  const { row, file } = add('a.mp4')
  store.full = true
  await t.rejects(removal.remove(row.id), { code: 'INSUFFICIENT_STORAGE' })
  t.notOk(existsSync(file), 'its space is free')
  t.ok(catalogue.get(row.id))
  store.full = false
  await until(() => catalogue.get(row.id) === undefined, Boolean, 'the end of its entry')
  t.match(events, [{ type: 'deleted', data: { id: row.id } }])
})

t.test('a file that was deleted by itself is forgotten as soon as it can', async (t) => {
  const { store, catalogue, removal, add } = await rig(t)
  const { row, file } = add('a.mp4')
  store.full = true
  removal.noteFile(row.path)
  rmSync(file)
  t.throws(() => removal.forgetFile(row.path), { code: 'INSUFFICIENT_STORAGE' })
  store.full = false
  await until(() => catalogue.get(row.id) === undefined, Boolean, 'the end of its entry')
})

t.test('a removal that was cut off is finished when its medium is there again', async (t) => {
  const { store, storage, catalogue, removal, add } = await rig(t)
  const { row, file } = add('a.mp4')
  const { row: other } = add('b.mp4')
  store.transaction(() => {
    store.table<number, true>('removals').put(row.id, true)
    store.table<number, string>('file_removals').put(other.id, other.path)
  })
  storage.away = true
  await removal.start()
  t.ok(existsSync(file))
  storage.away = false
  await until(() => catalogue.get(row.id) === undefined, Boolean, 'its end')
  await until(() => store.table('file_removals').count() === 0, Boolean, 'the end of the note')
  t.notOk(existsSync(file))
  t.ok(catalogue.get(other.id), 'whose file was still there')
})

t.test('a stop is answered while nothing can be written, and whoever hears of it fails', async (t) => {
  const { store, bus, catalogue, finishing, add } = await rig(t)
  const { row } = add('a.mp4', { state: 'recording' })
  bus.prependListener('recording-finished', () => store.transaction(() => undefined))
  store.full = true
  const active = new Active(row, { kind: 'video' } as never, { trigger: 'manual', createdBy: null }, '/a.mp4')
  const finished = await finishing.finish(active, 'stopped', { recordedMs: 1000, pausedMs: 0 })
  t.equal(finished.state, 'defect')
  t.equal(catalogue.get(row.id)?.state, 'recording')
  store.full = false
  await until(() => catalogue.get(row.id)?.state === 'defect', Boolean, 'its entry')
})

t.test('what is tried again and again is said once', async (t) => {
  const { lines, store, insistence, removal, add } = await rig(t)
  const { row } = add('a.mp4')
  let attempts = 0
  insistence.write(row.id, () => {
    if (++attempts < 4) throw new Error('full')
  })
  await until(
    () => attempts,
    (count) => count === 4,
    'the last attempt',
  )
  t.same(lines.splice(0), ['catalogue cannot be written; trying again'])
  for (const name of ['b.mp4', 'c.mp4']) {
    const { row } = add(name)
    store.table<number, true>('removals').put(row.id, true)
  }
  store.full = true
  await removal.start()
  t.same(lines, ['an interrupted removal cannot be finished yet'], 'for all that have the same trouble')
})

t.test('a verdict that could not be entered does not replace a newer one', async (t) => {
  const { store, catalogue, finishing, insistence, add } = await rig(t)
  const { row } = add('a.mp4', { state: 'recording' })
  const active = new Active(row, { kind: 'video' } as never, { trigger: 'manual', createdBy: null }, '/a.mp4')
  store.full = true
  await finishing.finish(active, 'stopped', { recordedMs: 1000, pausedMs: 0 })
  store.full = false
  catalogue.update(row.id, { state: 'ready', duration: 5000 })
  // It is the next to be tried again after the verdict.
  let later = 0
  insistence.write(0, () => {
    if (later++ < 2) throw new Error('later')
  })
  await until(
    () => later,
    (count) => count === 3,
    'the time of another attempt',
  )
  t.match(catalogue.get(row.id), { state: 'ready', duration: 5000 })
})

t.test('an end that is entered late is one of the corrected start', async (t) => {
  const { store, catalogue, finishing, add } = await rig(t)
  const { row } = add('a.mp4', { state: 'recording', media_type: 'timelapse' })
  const active = new Active(row, { kind: 'timelapse' } as never, { trigger: 'manual', createdBy: null }, '/a.mp4')
  store.full = true
  await finishing.finish(active, 'stopped', { recordedMs: 3000, pausedMs: 500 })
  store.full = false
  const start = row.timestamp_start + 9e9
  catalogue.update(row.id, { timestamp_start: start })
  await until(
    () => catalogue.get(row.id)?.state,
    (state) => state !== 'recording',
    'the end is entered',
  )
  t.match(catalogue.get(row.id), { timestamp_start: start, timestamp_end: start + 3500 })
})

t.test('the indexes are made anew on a full disk too', async (t) => {
  const disk = memoryDisk(t, '48m')
  const store = new Store(join(disk, 'db'), silent)
  await store.start()
  t.teardown(() => store.stop())
  const before = new Catalogue(store)
  const rows = 600
  store.transaction(() => {
    for (let n = 0; n < rows; n++) before.create(newRow(`${n}.mp4`, { timestamp_start: n * 1e7, timestamp_end: n * 1e7 + 1e5 }))
  })
  store.transaction(() => store.table<string, number>('meta').put('recordings_layout', 0))
  await immediate()
  fillDisk(disk)
  const filler = store.table<number, string>('filler')
  t.throws(
    () => {
      for (let n = 0; ; n++) store.urgent(() => filler.put(n, 'x'.repeat(300_000)))
    },
    { code: 'INSUFFICIENT_STORAGE' },
    'about a megabyte of the room is left',
  )
  const after = new Catalogue(store)
  t.equal(after.list({ limit: 1, offset: 0 }).total, rows)
  t.equal(store.table<string, number>('meta').get('recordings_layout'), 2)
})
