import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import pino from 'pino'
import t, { type Test } from 'tap'
import { Bus } from '../../../app/server/bus.ts'
import { Clock } from '../../../app/server/platform/index.ts'
import { scratchFolder } from '../../support/scratch.ts'

const BUILT = Date.UTC(2026, 0, 1)

interface Rig {
  readonly clock: Clock
  readonly root: string
  readonly steps: { delta_ms: number; synchronised: boolean }[]
  readonly synchronisations: number[]
  /** Time goes by: on both clocks, or on the wall clock alone (a step). */
  pass(ms: number, step?: number): void
}

function rig(t: Test, { wall = BUILT + 1000, timesync = false, uptime = '100.00 50.00' } = {}): Rig {
  const root = scratchFolder(t, 'clock')
  mkdirSync(join(root, 'proc/sys/kernel/random'), { recursive: true })
  writeFileSync(join(root, 'proc/sys/kernel/random/boot_id'), 'boot-a\n')
  writeFileSync(join(root, 'proc/uptime'), uptime)
  if (timesync) mkdirSync(join(root, 'run/systemd/timesync'), { recursive: true })
  const bus = new Bus()
  const steps: Rig['steps'] = []
  const synchronisations: number[] = []
  let now = wall
  let steady = 5000
  bus.on('clock-stepped', (step) => steps.push(step))
  bus.on('clock-synchronised', () => synchronisations.push(now))
  const clock = new Clock(bus, pino({ level: 'silent' }), { root, wall: () => now, monotonic: () => steady, builtAt: BUILT })
  clock.start()
  t.teardown(() => {
    clock.stop()
  })
  const pass = (ms: number, step = 0) => {
    steady += ms
    now += ms + step
  }
  return { clock, root, steps, synchronisations, pass }
}

t.test('a step is told before a time from behind it is seen', (t) => {
  const { clock, steps, pass } = rig(t)
  pass(1000)
  clock.look()
  t.same(steps, [])
  pass(500, 86_400_000)
  t.equal(clock.now().getTime(), BUILT + 1000 + 1500 + 86_400_000)
  t.same(steps, [{ delta_ms: 86_400_000, synchronised: true }])
  clock.now()
  t.equal(steps.length, 1, 'told once')
  pass(500, -86_400_000)
  clock.look()
  t.match(steps[1], { delta_ms: -86_400_000 })
  t.equal(clock.monotonic(), 100_000 + 2000, 'the steady clock takes no notice')
  t.end()
})

t.test('slewing is no step, however long it goes on', (t) => {
  const { clock, steps, pass } = rig(t)
  for (let second = 0; second < 100; second++) {
    pass(1000, 500)
    clock.look()
  }
  t.same(steps, [])
  t.end()
})

t.test('the steps add up to what the wall clock gained, whatever happens', (t) => {
  const moves = fc.array(fc.record({ ms: fc.integer({ min: 0, max: 5000 }), step: fc.integer({ min: -1e10, max: 1e10 }) }))
  fc.assert(
    fc.property(moves, (list) => {
      const { clock, steps, pass } = rig(t)
      const large = list.filter(({ step }) => Math.abs(step) > 2000)
      for (const { ms, step } of large) {
        pass(ms, step)
        clock.look()
      }
      return steps.reduce((sum, { delta_ms }) => sum + delta_ms, 0) === large.reduce((sum, { step }) => sum + step, 0)
    }),
    { numRuns: 50 },
  )
  t.end()
})

t.test('with a time service, its word counts', (t) => {
  const { clock, root, steps, synchronisations, pass } = rig(t, { timesync: true })
  t.equal(clock.synchronised, false, 'plausible is not enough')
  t.equal(clock.certain, true)
  writeFileSync(join(root, 'run/systemd/timesync/synchronized'), '')
  pass(300, 5_000_000)
  clock.look()
  t.equal(clock.synchronised, true)
  t.same(steps, [{ delta_ms: 5_000_000, synchronised: true }])
  t.equal(synchronisations.length, 1)
  clock.look()
  t.equal(synchronisations.length, 1)
  t.end()
})

t.test('without one, a clock before the build is wrong', (t) => {
  const { clock, synchronisations, pass } = rig(t, { wall: 0 })
  t.equal(clock.synchronised, false)
  t.equal(clock.certain, false)
  pass(1000, BUILT)
  clock.look()
  t.equal(clock.synchronised, true)
  t.equal(synchronisations.length, 1)
  t.equal(clock.bootId, 'boot-a')
  t.end()
})

t.test('the offset is the same for every process of a boot', (t) => {
  const first = rig(t, { wall: BUILT + 1000, uptime: '100.00 1.00' }).clock
  const later = rig(t, { wall: BUILT + 61_000, uptime: '160.00 1.00' }).clock
  t.equal(first.offset, later.offset)
  t.end()
})
