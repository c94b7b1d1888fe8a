import t, { type Test } from 'tap'
import { CronTimer, nextCronTime } from '../../../app/server/recording/cron-timer.ts'

const SECOND = 1000
const HOUR = 3_600_000
const DAY = 24 * HOUR
const MORNING = 8 * HOUR
const NOW = Date.UTC(2026, 5, 1)

/** A timer that is due at each `period`, on a clock that only the test moves. */
function rig(t: Test, { start = NOW, period = DAY, phase = MORNING } = {}) {
  let wall = start
  const fired: string[] = []
  const nextTime = () => (Math.floor((wall - phase) / period) + 1) * period + phase
  const timer = new CronTimer(
    nextTime,
    () => fired.push(new Date(wall).toISOString()),
    () => wall,
  )
  timer.start()
  t.teardown(() => timer.stop())
  const at = (moment: number) => {
    wall = moment
    timer.look()
    return fired.length
  }
  return { timer, fired, at }
}

t.test('it fires once at each time', (t) => {
  const { timer, at } = rig(t)
  t.same(timer.next, new Date(NOW + MORNING))
  t.equal(at(NOW + MORNING - 1), 0)
  t.equal(at(NOW + MORNING), 1)
  t.equal(at(NOW + MORNING + 1), 1)
  t.same(timer.next, new Date(NOW + DAY + MORNING))
  t.equal(at(NOW + DAY + MORNING + 20), 2, 'a little late')
  t.end()
})

t.test('a clock that is set for the first time passes over half a century at once', (t) => {
  const { timer, at } = rig(t, { start: 30 * SECOND, period: SECOND, phase: 0 })
  t.equal(at(NOW), 0)
  t.same(timer.next, new Date(NOW + SECOND))
  t.equal(at(NOW + SECOND), 1)
  t.end()
})

t.test('a clock that was years ahead holds nothing up', (t) => {
  const ahead = NOW + 3650 * DAY
  const { timer, at } = rig(t, { start: ahead })
  t.equal(at(ahead + MORNING), 1)
  t.equal(at(NOW), 1)
  t.same(timer.next, new Date(NOW + MORNING))
  t.equal(at(NOW + MORNING), 2, 'what fired then was another time')
  t.end()
})

t.test('a clock that was hours ahead does not use up the real time', (t) => {
  const { at } = rig(t)
  t.equal(at(NOW + MORNING), 1, 'which it was not')
  t.equal(at(NOW + MORNING - 3 * HOUR), 1)
  t.equal(at(NOW + MORNING), 2)
  t.end()
})

t.test('a small correction loses nothing and repeats nothing', (t) => {
  const { at } = rig(t)
  at(NOW + MORNING - 10 * SECOND)
  t.equal(at(NOW + MORNING + 20 * SECOND), 1, 'passed over: late')
  t.equal(at(NOW + MORNING - 15 * SECOND), 1)
  t.equal(at(NOW + MORNING), 1, 'has been')
  t.equal(at(NOW + DAY + MORNING), 2)
  t.end()
})

t.test('what is long past is left out', (t) => {
  const { at } = rig(t)
  t.equal(at(NOW + MORNING + HOUR), 0)
  t.equal(at(NOW + DAY + MORNING), 1)
  t.end()
})

t.test('what never comes waits for nothing', (t) => {
  t.equal(nextCronTime('0 0 29 2 1#1'), null)
  const next = nextCronTime('0 0 1 1 *') ?? 0
  t.equal(new Date(next).getMonth(), 0)
  t.ok(next > Date.now())
  const timer = new CronTimer(
    () => null,
    () => t.fail('fired'),
  )
  timer.start()
  t.equal(timer.next, null)
  timer.stop()
  t.end()
})
