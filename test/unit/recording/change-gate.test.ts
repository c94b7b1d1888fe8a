import t from 'tap'
import { ChangeGate } from '../../../app/server/recording/change-gate.ts'

function deferred() {
  let resolve = () => {}
  let reject = (_error: Error) => {}
  const promise = new Promise<void>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}

t.test('a start waits for every change under way, also for one inside another and one that fails', async (t) => {
  const gate = new ChangeGate()
  const told: string[] = []
  const { promise: first, resolve: endFirst } = deferred()
  const { promise: second, reject: endSecond } = deferred()
  const changes = [gate.hold(() => gate.hold(() => first)), gate.hold(() => second)]
  const start = gate.enter(() => told.push('started'))
  endFirst()
  await changes[0]
  t.same(told, [])
  endSecond(new Error('refused'))
  await t.rejects(changes[1] ?? Promise.resolve(), { message: 'refused' })
  t.equal(await start, true, 'it had to wait')
  t.same(told, ['started'])
})

t.test('a change that comes between two others is waited for as well', async (t) => {
  const gate = new ChangeGate()
  const { promise: late, resolve: endLate } = deferred()
  let started = false
  let lateChange: Promise<void> | undefined
  const first = gate.hold(async () => {
    await Promise.resolve()
    lateChange = gate.hold(() => late)
  })
  const start = gate.enter(() => {
    started = true
  })
  await first
  await new Promise(setImmediate)
  t.notOk(started)
  endLate()
  await lateChange
  await start
  t.ok(started)
})

t.test('without a change it marks at once', async (t) => {
  let marked = false
  const entering = new ChangeGate().enter(() => {
    marked = true
  })
  t.ok(marked)
  t.equal(await entering, false)
})
