import fc from 'fast-check'
import t from 'tap'
import {
  IDLE,
  nextTick,
  stepTrigger,
  TRIGGER_SOURCES,
  type TriggerInput,
  type TriggerState,
} from '../../../app/server/recording/trigger-machine.ts'

const TIMES = { motion: { postRollMs: 10_000, maxMs: 60_000 }, alert: { postRollMs: 5000, maxMs: 30_000 } }
const begin = (source: 'motion' | 'alert' = 'motion'): TriggerInput => ({ type: 'begin', source })
const end = (source: 'motion' | 'alert' = 'motion'): TriggerInput => ({ type: 'end', source })
const tick: TriggerInput = { type: 'tick' }

/** Goes through inputs with their times; what was done, with its time. */
function play(inputs: readonly (readonly [number, TriggerInput])[]) {
  let state: TriggerState = IDLE
  const done: [number, string][] = []
  for (const [at, input] of inputs) {
    const step = stepTrigger(state, input, at, TIMES)
    state = step.state
    for (const action of step.actions) done.push([at, action])
  }
  return { state, done }
}

t.test('a recording lasts as long as the motion and the post-roll behind it', async (t) => {
  const { state, done } = play([
    [0, begin()],
    [4000, end()],
    [4000, tick],
    [9000, begin()],
    [12_000, end()],
    [21_999, tick],
    [22_000, tick],
  ])
  t.same(done, [
    [0, 'start'],
    [22_000, 'stop'],
  ])
  t.equal(state.phase, 'idle')
})

t.test('motion that does not end goes on in another recording', async (t) => {
  const { done } = play([
    [0, begin()],
    [60_000, tick],
    [120_000, tick],
    [121_000, end()],
    [131_000, tick],
  ])
  t.same(done, [
    [0, 'start'],
    [60_000, 'stop'],
    [60_000, 'start'],
    [120_000, 'stop'],
    [120_000, 'start'],
    [131_000, 'stop'],
  ])
})

t.test('an alert during motion: the longer of the two decides', async (t) => {
  const { done } = play([
    [0, begin()],
    [1000, end()],
    [10_000, begin('alert')],
    [10_000, end('alert')],
    [11_000, tick],
    [15_000, tick],
  ])
  t.same(done, [
    [0, 'start'],
    [15_000, 'stop'],
  ])
})

t.test('what somebody stopped is over until something new begins', async (t) => {
  const { done } = play([
    [0, begin()],
    [1000, { type: 'lost' }],
    [2000, end()],
    [20_000, tick],
    [30_000, begin()],
  ])
  t.same(done, [
    [0, 'start'],
    [30_000, 'start'],
  ])
})

t.test('whatever comes: starts and stops alternate, none is longer than allowed, and silence ends all', async () => {
  const input = fc.oneof(
    fc.record({ type: fc.constantFrom('begin' as const, 'end' as const), source: fc.constantFrom(...TRIGGER_SOURCES) }),
    fc.constant(tick),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 40_000 }), input), { maxLength: 60 }), (moves) => {
      let state: TriggerState = IDLE
      let now = 0
      let startedAt: number | null = null
      let good = true
      const act = (next: TriggerInput) => {
        const step = stepTrigger(state, next, now, TIMES)
        state = step.state
        for (const action of step.actions) {
          if (action === 'start') {
            good &&= startedAt === null
            startedAt = now
          }
          if (action === 'stop') {
            good &&= startedAt !== null && now - startedAt <= 60_000
            startedAt = null
          }
        }
        good &&= (startedAt !== null) === (state.phase === 'recording')
      }
      const advance = (until: number) => {
        for (let due = nextTick(state, TIMES); due <= until; due = nextTick(state, TIMES)) {
          now = Math.max(now, due)
          act(tick)
        }
        now = until
      }
      for (const [pause, next] of moves) {
        advance(now + pause)
        act(next)
      }
      for (const source of TRIGGER_SOURCES) act(end(source))
      advance(now + 60_000)
      return good && state.phase === 'idle' && startedAt === null
    }),
    { numRuns: 500 },
  )
})
