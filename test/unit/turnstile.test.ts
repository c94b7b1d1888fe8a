import t from 'tap'
import { Turnstile } from '../../app/server/turnstile.ts'

t.test('so many at once, the next in the order in which they came, and the rest refused', async (t) => {
  const turnstile = new Turnstile(2, 2, () => new Error('full'))
  const begun: number[] = []
  const ends: (() => void)[] = []
  const visit = (n: number) =>
    turnstile.pass(() => {
      begun.push(n)
      return new Promise<void>((resolve) => ends.push(resolve))
    })
  const visits = [visit(1), visit(2), visit(3), visit(4)]
  await t.rejects(visit(5), { message: 'full' })
  t.same(begun, [1, 2])
  ends[1]?.()
  await visits[1]
  t.same(begun, [1, 2, 3])
  ends[0]?.()
  ends[2]?.()
  await Promise.all([visits[0], visits[2]])
  t.same(begun, [1, 2, 3, 4])
  ends[3]?.()
  await visits[3]
})

t.test('work that fails leaves its place', async (t) => {
  const turnstile = new Turnstile(1, 0, () => new Error('full'))
  await t.rejects(
    turnstile.pass(() => Promise.reject(new Error('broken'))),
    { message: 'broken' },
  )
  t.equal(await turnstile.pass(() => Promise.resolve(7)), 7)
})

t.test('who gives up leaves the row', async (t) => {
  const turnstile = new Turnstile(1, 1, () => new Error('full'))
  let end = () => {}
  const first = turnstile.pass(() => new Promise<void>((resolve) => (end = resolve)))
  const given = new AbortController()
  const second = turnstile.pass(() => Promise.resolve(), given.signal)
  given.abort(new Error('given up'))
  await t.rejects(second, { message: 'given up' })
  const third = turnstile.pass(() => Promise.resolve(3))
  end()
  await first
  t.equal(await third, 3)
  t.equal(await turnstile.pass(() => Promise.resolve(4)), 4)
})
