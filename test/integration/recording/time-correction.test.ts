import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import pino from 'pino'
import t, { type Test } from 'tap'
import { Bus } from '../../../app/server/bus.ts'
import { Clock } from '../../../app/server/platform/index.ts'
import { Catalogue, TimeCorrection } from '../../../app/server/recording/index.ts'
import { Store } from '../../../app/server/store/index.ts'
import { until } from '../../support/api.ts'
import { newRow } from '../../support/recordings.ts'
import { fillDisk, memoryDisk } from '../../support/scratch.ts'

const silent = pino({ level: 'silent' })

/** A machine whose server can crash; its time goes by only when the test says so. */
class Machine {
  private readonly folder = mkdtempSync(join(tmpdir(), 'time-'))
  private readonly root = join(this.folder, 'root')
  /** Where the database is. */
  disk = this.folder
  private wall = 1_000_000
  /** Milliseconds since boot: the truth. */
  uptime = 0
  bus = new Bus()
  store!: Store
  catalogue!: Catalogue
  clock!: Clock
  private correction!: TimeCorrection
  /** When each recording really began. */
  readonly began = new Map<number, number>()

  async start(): Promise<void> {
    mkdirSync(join(this.root, 'run/systemd/timesync'), { recursive: true })
    mkdirSync(join(this.root, 'proc/sys/kernel/random'), { recursive: true })
    writeFileSync(join(this.root, 'proc/sys/kernel/random/boot_id'), 'boot-a')
    writeFileSync(join(this.root, 'proc/uptime'), `${this.uptime / 1000} 0`)
    this.bus = new Bus()
    this.store = new Store(join(this.disk, 'db'), silent)
    await this.store.start()
    this.catalogue = new Catalogue(this.store)
    const startedAt = this.uptime
    const options = { root: this.root, wall: () => this.wall, monotonic: () => this.uptime - startedAt, builtAt: 0 }
    this.clock = new Clock(this.bus, silent, options)
    this.clock.start()
    this.correction = new TimeCorrection(this.store, this.catalogue, this.clock, this.bus, silent, 20)
    this.correction.start()
  }

  /** Work that was under way stays undone. */
  async crash(): Promise<void> {
    this.clock.stop()
    await this.correction.stop()
    await this.store.stop()
  }

  pass(ms: number): void {
    this.uptime += ms
    this.wall += ms
  }

  step(ms: number): void {
    this.wall += ms
  }

  record(state: 'ready' | 'recording' = 'ready'): number {
    const timestamp_start = this.clock.now().getTime()
    const over = { timestamp_start, state, time_synced: this.clock.synchronised, boot_id: this.clock.bootId }
    const { id } = this.catalogue.create(newRow(`r${this.began.size}.mp4`, over))
    this.began.set(id, this.uptime)
    return id
  }

  synchronise(): void {
    writeFileSync(join(this.root, 'run/systemd/timesync/synchronized'), '')
    this.clock.look()
  }

  settled(): Promise<void> {
    return this.correction.settled()
  }

  /** What the catalogue says the recording's real beginning was, by the clock of now. */
  dated(id: number): number {
    return (this.catalogue.get(id)?.timestamp_start ?? 0) - (this.wall - this.uptime)
  }

  async end(): Promise<void> {
    await this.crash()
    rmSync(this.folder, { recursive: true })
  }
}

async function machine(t: Test): Promise<Machine> {
  const made = new Machine()
  await made.start()
  t.teardown(() => made.end())
  return made
}

t.test('what was recorded before the clock was set gets its real time with the first synchronisation', async (t) => {
  const m = await machine(t)
  const old = m.catalogue.create(newRow('old.mp4', { timestamp_start: 5, time_synced: false, boot_id: 'boot-before' }))
  const events: unknown[] = []
  m.bus.on('event', ({ type, data }) => events.push({ type, data }))
  const first = m.record()
  m.pass(60_000)
  const running = m.record('recording')
  m.pass(60_000)
  m.step(50 * 365 * 86_400_000)
  m.synchronise()
  const later = m.record()
  await m.settled()
  t.same(
    [first, running, later].map((id) => m.dated(id)),
    [0, 60_000, 120_000],
  )
  t.match(m.catalogue.get(first), { time_synced: true, duration: 1000, state: 'ready' })
  t.match(m.catalogue.get(running), { time_synced: true, state: 'recording' })
  const row = m.catalogue.get(first)
  t.equal(row && row.timestamp_end - row.timestamp_start, 1000)
  t.same(m.catalogue.get(old.id), old, 'of an earlier boot, nobody knows')
  t.same(
    m.catalogue.list({ limit: 10, offset: 0 }).rows.map(({ id }) => id),
    [later, running, first, old.id],
    'the list follows',
  )
  t.match(events, [{ type: 'time_corrected', data: { recordings: 2 } }])
  m.step(-86_400_000)
  m.clock.look()
  await m.settled()
  t.equal(m.dated(first), 86_400_000, 'a dated entry stays where it is')
})

t.test('a step while the server was down is made up for', async (t) => {
  const m = await machine(t)
  const id = m.record()
  await m.crash()
  m.pass(10_000)
  m.step(1_000_000_000)
  await m.start()
  await m.settled()
  t.equal(m.dated(id), 0)
  t.match(m.catalogue.get(id), { time_synced: false })
})

t.test('steps, crashes and recordings in any order: every date is right, and ids are in order', async () => {
  const move = fc.oneof(
    fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1000, max: 1e7 }) }),
    fc.record({
      do: fc.constant('step' as const),
      ms: fc.oneof(fc.integer({ min: 1e5, max: 1e12 }), fc.integer({ min: -5e5, max: -1e5 })),
    }),
    fc.record({ do: fc.constant('record' as const), ms: fc.constant(0) }),
    fc.record({ do: fc.constant('crash' as const), ms: fc.constant(0) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(move, { maxLength: 25 }), async (moves) => {
      const m = new Machine()
      await m.start()
      m.step(1e9)
      for (const { do: what, ms } of moves) {
        if (what === 'pass') m.pass(ms)
        else if (what === 'step') m.step(ms)
        else if (what === 'record') m.record()
        else {
          await m.crash()
          await m.start()
        }
      }
      m.synchronise()
      await m.settled()
      const right = [...m.began].every(([id, began]) => m.dated(id) === began && m.catalogue.get(id)?.time_synced === true)
      const byTime = m.catalogue.list({ limit: 100, offset: 0 }).rows.map(({ id }) => id)
      await m.end()
      return right && byTime.every((id, i) => i === 0 || id < (byTime[i - 1] as number))
    }),
    { numRuns: 12 },
  )
})

t.test('more than one batch', async (t) => {
  const m = await machine(t)
  for (let i = 0; i < 450; i++) m.record()
  m.step(1e9)
  m.clock.look()
  await m.settled()
  t.ok([...m.began.keys()].every((id) => m.dated(id) === 0))
})

t.test('on a full disk dates are corrected all the same', async (t) => {
  const m = new Machine()
  m.disk = memoryDisk(t, '32m')
  await m.start()
  t.teardown(() => m.end())
  for (let i = 0; i < 60; i++) m.record()
  fillDisk(m.disk)
  const others = m.store.table<number, string>('others')
  t.throws(
    () => {
      for (let i = 0; ; i++) others.put(i, 'x'.repeat(100_000))
    },
    { code: 'INSUFFICIENT_STORAGE' },
  )
  m.step(1e9)
  m.clock.look()
  await m.settled()
  t.ok([...m.began.keys()].every((id) => m.dated(id) === 0))
})

t.test('what the database does not take is tried again, in the order of the steps', async (t) => {
  const m = await machine(t)
  const before = m.record()
  const { urgent } = m.store
  let refused = 0
  m.store.urgent = () => {
    refused++
    throw new Error('full')
  }
  m.step(1e9)
  m.clock.look()
  m.pass(5000)
  m.store.urgent = urgent
  const between = m.record()
  m.store.urgent = () => {
    refused++
    throw new Error('full')
  }
  m.step(1e8)
  m.clock.look()
  await until(
    () => refused,
    (count) => count > 4,
    'it to be tried again',
  )
  m.store.urgent = urgent
  await until(
    () => [m.dated(before), m.dated(between)],
    ([first, second]) => first === 0 && second === 5000,
    'the right dates',
  )
  await m.settled()
  await m.crash()
  await m.start()
  await m.settled()
  t.same([m.dated(before), m.dated(between)], [0, 5000], 'no step counts twice')
})
