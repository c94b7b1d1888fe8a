import t from 'tap'
import { addressKey, LOCK_MS, Lockout, MAX_FAILURES, WINDOW_MS } from '../../../app/server/auth/lockout.ts'
import { PasswordHasher } from '../../../app/server/auth/passwords.ts'
import { ADMIN, basic, HERE, open, PASSWORD, source } from './harness.ts'

const ELSEWHERE = '198.51.100.9'

t.test('an account locks after five failures from anywhere, a right password included; a session goes on', async (t) => {
  const { auth, clock, events, login } = await open(t)
  const { token } = await login()
  t.match(await auth.authenticate(basic('admin', PASSWORD)), { username: 'admin' }, 'remembered from here on')
  for (let i = 0; i < MAX_FAILURES; i++) {
    const attempt = auth.login({ username: 'admin', password: 'wrong' }, `203.0.113.${i}`, false)
    await t.rejects(attempt, { code: 'INVALID_CREDENTIALS' })
  }
  const locked = { code: 'ACCOUNT_LOCKED', status: 403, headers: { 'Retry-After': String(LOCK_MS / 1000) } }
  await t.rejects(login(), locked)
  await t.rejects(Promise.resolve(auth.authenticate(basic('admin', PASSWORD))), locked)
  t.match(await auth.authenticate(source({ token })), { username: 'admin' }, 'a valid session goes on')
  t.match(
    events.filter(({ type }) => type === 'locked'),
    [{ data: { username: 'admin', target: 'admin', address: '203.0.113.4' } }],
  )
  clock.now += LOCK_MS - 1
  await t.rejects(login(), { code: 'ACCOUNT_LOCKED', headers: { 'Retry-After': '1' } })
  clock.now += 1
  t.ok(await login())
})

t.test('somebody who polls with the right password does not cover for somebody who guesses', async (t) => {
  const { auth, login } = await open(t)
  for (let i = 0; i < MAX_FAILURES; i++) {
    t.match(await auth.authenticate(basic('admin', PASSWORD)), { username: 'admin' })
    const guess = auth.login({ username: 'admin', password: 'wrong' }, `203.0.113.${i}`, false)
    await t.rejects(guess, { code: 'INVALID_CREDENTIALS' })
  }
  await t.rejects(login(), { code: 'ACCOUNT_LOCKED' })
})

t.test('an account that does not exist answers and locks the same way', async (t) => {
  const { auth } = await open(t, { hasher: new PasswordHasher() })
  const work: number[] = []
  const answers = async (username: string) => {
    const seen: unknown[] = []
    const before = process.cpuUsage().user
    for (let i = 0; i <= MAX_FAILURES; i++) {
      if (i === MAX_FAILURES) work.push(process.cpuUsage().user - before)
      const address = `203.0.113.${i}`
      await auth.login({ username, password: 'Wrong-Horse-9' }, address, false).catch((error) => {
        const { code, message, details, headers } = error
        seen.push({ code, message, details, headers })
      })
    }
    return seen
  }
  const known = await answers('admin')
  t.equal(known.length, MAX_FAILURES + 1)
  // The addresses have failed once each: each is far from its own lock.
  t.same(await answers('nobody'), known)
  const [forKnown = 0, forNobody = 0] = work
  t.ok(forNobody > forKnown / 4 && forNobody < forKnown * 4, `the same work: ${forKnown} and ${forNobody} µs of CPU`)
})

t.test('failures spread over more than the window do not lock; a success starts anew', async (t) => {
  const { auth, clock, login } = await open(t)
  let host = 0
  const fail = async () => {
    host += 1
    await t.rejects(auth.login({ username: 'admin', password: 'no' }, `203.0.113.${host}`, false), {
      code: 'INVALID_CREDENTIALS',
    })
  }
  for (let i = 0; i < MAX_FAILURES - 1; i++) await fail()
  clock.now += WINDOW_MS
  for (let i = 0; i < MAX_FAILURES - 1; i++) await fail()
  t.ok(await login())
  for (let i = 0; i < MAX_FAILURES - 1; i++) await fail()
  t.ok(await login())
})

t.test('an address locks whatever names it tries, over HTTP and RTSP together', async (t) => {
  const { auth, login } = await open(t)
  for (const name of ['a', 'b', 'c']) {
    await t.rejects(auth.login({ username: name, password: 'x' }, HERE, false), { code: 'INVALID_CREDENTIALS' })
  }
  auth.rtspFailed('d', HERE)
  auth.rtspFailed(null, `::ffff:${HERE}`)
  await t.rejects(login(), { code: 'ACCOUNT_LOCKED' })
  t.ok(await auth.login({ username: 'admin', password: PASSWORD }, ELSEWHERE, false))
  t.same(auth.lockout.locked().addresses, [HERE])
})

t.test('a right guess among many at once is not told when the account locked meanwhile', async (t) => {
  const { auth } = await open(t)
  const guesses = [...Array.from({ length: 8 }, (_, i) => `wrong${i}`), PASSWORD]
  const results = await Promise.allSettled(
    guesses.map((password, i) => auth.login({ username: 'admin', password }, `203.0.113.${i}`, false)),
  )
  t.same(
    results.filter(({ status }) => status === 'fulfilled'),
    [],
  )
})

t.test('a lock survives a restart, and an admin can lift it', async (t) => {
  const first = await open(t)
  for (let i = 0; i < MAX_FAILURES; i++) first.auth.rtspFailed('admin', `203.0.113.${i}`)
  await first.close()
  const { auth, login } = await open(t, { folder: first.folder, now: first.clock.now })
  await t.rejects(login(), { code: 'ACCOUNT_LOCKED' })
  t.equal(auth.lockout.isLocked('admin'), true)
  await auth.accounts.change(ADMIN, 'admin', { locked: false })
  t.ok(await login())
})

t.test('addresses: IPv6 counts by its /64, mapped IPv4 as IPv4', (t) => {
  t.equal(addressKey('2001:db8:1:2:3:4:5:6'), addressKey('2001:db8:1:2::ffff'))
  t.not(addressKey('2001:db8:1:2::1'), addressKey('2001:db8:1:3::1'))
  t.equal(addressKey('::ffff:192.0.2.1'), '192.0.2.1')
  t.equal(addressKey('192.0.2.1'), '192.0.2.1')
  t.ok(addressKey('?'.repeat(5000)).length <= 64)
  t.end()
})

t.test('the table is bounded, and what is locked stays while there is room', async (t) => {
  const { store } = await open(t)
  let now = 1_700_000_000_000
  const lockout = new Lockout(store, () => now, 20)
  for (let i = 0; i < MAX_FAILURES; i++) lockout.fail('victim', '192.0.2.1')
  for (let i = 0; i < 500; i++) lockout.fail(`name${i}`, `198.51.100.${i % 250}`)
  t.ok(store.table('lockout').count() <= 20)
  t.equal(lockout.isLocked('victim'), true)
  now -= 365 * 86_400_000
  t.equal(lockout.isLocked('victim'), false, 'a clock set back locks nobody for a year')
})
