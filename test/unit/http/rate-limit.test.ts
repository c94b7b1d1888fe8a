import fc from 'fast-check'
import t from 'tap'
import { clientAddress } from '../../../app/server/http/address.ts'
import { RateLimiter, type RateLimitMode, RecentMap } from '../../../app/server/http/rate-limit.ts'

function limiter(mode: RateLimitMode = 'device') {
  const clock = { now: 1_000_000 }
  const state = { mode }
  return {
    clock,
    state,
    limits: new RateLimiter(
      () => state.mode,
      () => clock.now,
    ),
  }
}

t.test('device classes have their own budgets', async (t) => {
  const { limits } = limiter()
  for (const [rate, limit] of [
    ['image', 10],
    ['file', 5],
    ['api', 100],
    ['upload', 2],
  ] as const) {
    for (let left = limit - 1; left >= 0; left--) t.match(limits.take('a', rate), { allowed: true, limit, remaining: left })
    t.match(limits.take('a', rate), { allowed: false, remaining: 0, retryAfter: 1 })
    t.match(limits.take('b', rate), { allowed: true }, 'another address is not concerned')
  }
})

t.test('the budget comes back with time', async (t) => {
  const { clock, limits } = limiter()
  for (let i = 0; i < 10; i++) limits.take('a', 'image')
  t.equal(limits.take('a', 'image')?.allowed, false)
  t.equal(limits.take('a', 'image')?.reset, 1001)
  clock.now += 100
  t.equal(limits.take('a', 'image')?.allowed, true)
  t.equal(limits.take('a', 'image')?.allowed, false)
  clock.now -= 50_000
  t.equal(limits.take('a', 'image')?.allowed, false, 'a clock set back gives nothing')
  clock.now += 1000
  t.equal(limits.take('a', 'image')?.allowed, true, 'and takes nothing')
})

t.test('overview: a hundred a minute over all classes', async (t) => {
  const { clock, limits, state } = limiter('overview')
  for (let i = 0; i < 100; i++) t.equal(limits.take('a', i % 2 ? 'api' : 'image')?.allowed, true)
  t.match(limits.take('a', 'file'), { allowed: false, limit: 100, period: 'minute', retryAfter: 1, reset: 1060 })
  clock.now += 600
  t.equal(limits.take('a', 'file')?.allowed, true)
  state.mode = 'off'
  t.equal(limits.take('a', 'file'), null)
})

t.test('never more than the budget and its refill, whatever the pattern', async () => {
  fc.assert(
    fc.property(fc.array(fc.nat(400), { maxLength: 200 }), (steps) => {
      const { clock, limits } = limiter()
      const begin = clock.now
      let granted = 0
      for (const step of steps) {
        clock.now += step
        if (limits.take('a', 'file')?.allowed) granted++
      }
      return granted <= 5 + ((clock.now - begin) * 5) / 1000 + 1e-6
    }),
  )
})

t.test('memory is bounded, and what is used stays', async (t) => {
  const map = new RecentMap<number>(100)
  map.set('kept', 1)
  for (let i = 0; i < 10_000; i++) {
    map.set(`k${i}`, i)
    if (i % 20 === 0) t.equal(map.get('kept'), 1)
    if (map.size > 100) t.fail(`size ${map.size}`)
  }
})

t.test('addresses', async (t) => {
  t.strictSame(clientAddress('10.0.0.1'), { text: '10.0.0.1', key: '10.0.0.1' })
  t.strictSame(clientAddress('0000:0000:0000:0000:0000:ffff:0a00:0001'), { text: '10.0.0.1', key: '10.0.0.1' })
  const v6 = clientAddress('2001:0db8:0001:0002:0003:0000:0000:0001')
  t.strictSame(v6, { text: '2001:db8:1:2:3::1', key: '2001:0db8:0001:0002' })
  t.equal(clientAddress('2001:0db8:0001:0002:ffff:0000:0000:0009').key, v6.key)
})
