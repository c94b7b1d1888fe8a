import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { Bus, type ServerEvent } from '../../../app/server/bus.ts'
import { DeviceStorage } from '../../../app/server/files/index.ts'
import { Clock, type DiskSpace } from '../../../app/server/platform/index.ts'
import { ClockTrust } from '../../../app/server/recording/clock-trust.ts'
import { Catalogue, type NewRow, Removal, Retention, type RetentionPolicy } from '../../../app/server/recording/index.ts'
import { Store } from '../../../app/server/store/index.ts'
import { until } from '../../support/api.ts'
import { newRow } from '../../support/recordings.ts'
import { scratchFolder } from '../../support/scratch.ts'

const DAY = 86_400_000
const NOW = Date.UTC(2026, 5, 1)
const KB = 1024
const silent = pino({ level: 'silent' })

/** A disk of 100 KB that the recordings alone fill. */
class SmallDisk extends DeviceStorage {
  readonly files: string[] = []
  /** A file that cannot be deleted now. */
  held: string | null = null
  override async reachable(devicePath: string): Promise<boolean> {
    return devicePath !== this.held
  }
  override space(): DiskSpace {
    const used = this.files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0)
    return { total: 100 * KB, used, available: 100 * KB - used }
  }
}

interface Rig {
  readonly retention: Retention
  readonly catalogue: Catalogue
  readonly events: ServerEvent[]
  readonly clock: Clock
  readonly store: Store
  readonly storage: SmallDisk
  /** Stops of time: both clocks, or the wall clock alone. */
  pass(ms: number, step?: number): void
  add(daysOld: number, over?: Partial<NewRow>): number
  synchronise(): void
  exists(id: number): boolean
}

async function rig(
  t: Test,
  policy: Partial<RetentionPolicy>,
  { timesync = true, synchronised = true, measurable = true } = {},
): Promise<Rig> {
  const folder = scratchFolder(t, 'retention')
  const root = join(folder, 'root')
  mkdirSync(join(root, timesync ? 'run/systemd/timesync' : 'proc'), { recursive: true })
  const synchronise = () => writeFileSync(join(root, 'run/systemd/timesync/synchronized'), '')
  if (timesync && synchronised) synchronise()
  const bus = new Bus()
  const events: ServerEvent[] = []
  bus.on('event', (event) => events.push(event))
  const store = new Store(join(folder, 'db'), silent)
  await store.start()
  let wall = NOW
  let steady = 0
  const clock = new Clock(bus, silent, { root, wall: () => wall, monotonic: () => steady, builtAt: 0 })
  clock.start()
  const catalogue = new Catalogue(store)
  const storage = new SmallDisk(join(folder, 'media'))
  const removal = new Removal(store, catalogue, storage, bus, silent)
  const all = { retention_days: 0, retention_min_free_bytes: 0, quota_bytes: 0, ...policy }
  const retention = new Retention(
    store,
    catalogue,
    removal,
    storage,
    clock,
    bus,
    silent,
    () => all,
    async () => {
      if (!measurable) throw new Error('EIO')
      return storage.space().used
    },
  )
  t.teardown(async () => {
    await retention.stop()
    clock.stop()
    await store.stop()
  })
  const files = new Map<number, string>()
  let made = 0
  const add = (daysOld: number, over: Partial<NewRow> = {}) => {
    const filename = `r${++made}.mp4`
    const path = `/media/data/recordings/${filename}`
    const size = over.size ?? 10 * KB
    const file = storage.hostPath(path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, Buffer.alloc(size))
    storage.files.push(file)
    const { id } = catalogue.create(newRow(filename, { timestamp_start: NOW - daysOld * DAY, size, ...over }))
    files.set(id, file)
    return id
  }
  const pass = (ms: number, step = 0) => {
    steady += ms
    wall += ms + step
  }
  const exists = (id: number) => catalogue.get(id) !== undefined && existsSync(files.get(id) ?? '')
  return { retention, catalogue, events, clock, store, storage, pass, add, synchronise, exists }
}

t.test('the old go, whatever is tagged, running or young stays', async (t) => {
  const { retention, add, exists, events } = await rig(t, { retention_days: 30 })
  const old = add(31)
  const tagged = add(400, { tag_markers: 1 })
  const running = add(60, { state: 'recording' })
  const young = add(29)
  retention.start()
  await until(
    () => exists(old),
    (there) => !there,
    'the removal',
  )
  await retention.stop()
  t.same([tagged, running, young].map(exists), [true, true, true])
  t.match(events, [{ category: 'recording', type: 'deleted', data: { id: old, reason: 'retention', cause: 'age' } }])
})

t.test('a date that is wrong deletes nothing', async (t) => {
  const { retention, add, exists, clock, pass, synchronise } = await rig(t, { retention_days: 30 }, { synchronised: false })
  const young = add(1)
  const old = add(31)
  const undated = add(500, { time_synced: false })
  pass(0, 365 * DAY)
  retention.start()
  // In turn with the first look.
  await retention.makeRoom(0)
  t.ok(exists(young), 'the clock has leapt ahead, but nobody vouches for it')
  t.ok(exists(old))
  pass(0, -365 * DAY)
  synchronise()
  clock.look()
  await until(
    () => exists(old),
    (there) => !there,
    'the removal once the time is known',
    4000,
  )
  t.ok(exists(young))
  t.ok(exists(undated), 'its date means nothing')
})

t.test('where nothing vouches for the clock, a leap must hold for a day', async (t) => {
  const { store, clock, pass } = await rig(t, {}, { timesync: false })
  const trust = new ClockTrust(store, clock)
  t.ok(trust.believes())
  pass(DAY / 2)
  t.ok(trust.believes(), 'time goes by')
  pass(600_000, 365 * DAY)
  t.notOk(trust.believes())
  pass(DAY - 1)
  t.notOk(new ClockTrust(store, clock).believes(), 'a restart does not make it believable')
  t.notOk(trust.believes())
  pass(1)
  t.ok(trust.believes(), 'it has held')
  pass(0, -365 * DAY)
  t.ok(trust.believes(), 'backwards harms nothing')
})

t.test('the oldest go when space is short, and no more than that', async (t) => {
  const { retention, add, exists, events } = await rig(t, { retention_min_free_bytes: 2 ** 31 })
  const ids = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0.5].map((days, i) => add(days, i === 0 ? { tag_markers: 2 } : {}))
  retention.start()
  await until(
    () => exists(ids[1] as number),
    (there) => !there,
    'the removal',
  )
  await retention.makeRoom(0)
  t.same(ids.map(exists), [true, false, true, true, true, true, true, true, true, true])
  const told = events.map(({ category, type }) => `${category}/${type}`)
  t.same(told, ['recording/deleted', 'alert/retention_space'])
})

t.test('makeRoom deletes nothing where nothing may go for the space', async (t) => {
  const { retention, add, exists } = await rig(t, { retention_min_free_bytes: 0 })
  const id = add(5)
  t.equal(await retention.makeRoom(5 * KB), false)
  t.ok(exists(id))
})

t.test('makeRoom deletes as much as is asked for, or nothing', async (t) => {
  const { retention, add, exists } = await rig(t, { retention_min_free_bytes: 1 })
  const ids = [5, 4, 3, 2, 1].map((days) => add(days))
  add(10, { tag_markers: 1, size: 50 * KB })
  t.equal(await retention.makeRoom(60 * KB), false, 'tagged recordings are in the way')
  t.equal(await retention.makeRoom(1000 * KB), false, 'more than the disk holds')
  t.same(ids.map(exists), [true, true, true, true, true])
  t.equal(await retention.makeRoom(15 * KB), true)
  t.same(ids.map(exists), [false, false, true, true, true])
  const both = await Promise.all([retention.makeRoom(5 * KB), retention.makeRoom(5 * KB)])
  t.same(both, [true, true])
})

t.test('the quota is a smaller disk', async (t) => {
  const { retention, add, exists, events } = await rig(t, { quota_bytes: 40 * KB })
  const ids = [6, 5, 4, 3, 2, 1].map((days, i) => add(days, i === 1 ? { tag_markers: 1 } : {}))
  t.equal(retention.space()?.available, 40 * KB, 'nothing is known of it before it was measured')
  retention.start()
  await until(
    () => ids.map(exists).filter(Boolean).length,
    (left) => left <= 3,
    'the removal',
    5000,
  )
  t.same(ids.map(exists), [false, true, false, false, true, true])
  t.match(retention.space(), { total: 40 * KB, available: 10 * KB })
  t.equal(await retention.makeRoom(20 * KB), true)
  t.equal(await retention.makeRoom(20 * KB), false, 'the tagged one is in the way')
  t.match(events[0], { type: 'deleted', data: { cause: 'quota' } })
})

t.test('what cannot be deleted holds up nothing, and goes when it can', async (t) => {
  const { retention, catalogue, storage, add, exists, pass } = await rig(t, { retention_days: 30 })
  const [held, old] = [add(40), add(31)]
  storage.held = catalogue.get(held)?.path ?? null
  retention.start()
  await until(
    () => exists(old),
    (there) => !there,
    'the removal of the other',
  )
  t.ok(exists(held))
  storage.held = null
  pass(600_000)
  await until(
    () => exists(held),
    (there) => !there,
    'its removal',
  )
})

t.test('a quota that cannot be measured keeps no space from being freed', async (t) => {
  const { retention, add, exists } = await rig(
    t,
    { retention_min_free_bytes: 2 ** 31, quota_bytes: 90 * KB },
    { measurable: false },
  )
  const ids = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0.5].map((days) => add(days))
  retention.start()
  await until(
    () => ids.filter(exists).length,
    (left) => left === 9,
    'the removal',
  )
  t.notOk(exists(ids[0] as number))
})
