import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PasswordHasher } from '../../../app/server/auth/passwords.ts'
import { ADMIN, basic, HERE, open, PASSWORD, QUICK_ROUNDS, source } from './harness.ts'

const md5 = (text: string) => createHash('md5').update(text).digest('hex')
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

t.test('a session that is pruned at a login is told to whoever holds it open', async (t) => {
  const { bus, clock, login, caller } = await open(t)
  const ended: string[] = []
  bus.on('session-ended', ({ sessionId }) => ended.push(sessionId))
  const { sessionId } = await caller(source({ token: (await login()).token }))
  clock.now += 3_600_001
  await login()
  t.same(ended, [sessionId])
})

t.test('the factory account must change its password; then RTSP knows it', async (t) => {
  const { auth, login, caller } = await open(t, { adminPassword: undefined })
  const { user, token } = await login('admin')
  t.equal(user.must_change_password, true)
  t.same(auth.rtspUsers(), [], 'the factory password opens no stream')
  const admin = await caller(source({ authorization: `Bearer ${token}` }))
  t.equal(admin.mustChangePassword, true)
  const by = { ...ADMIN, sessionId: admin.sessionId }
  await t.rejects(auth.accounts.changeOwnPassword(by, 'admin', 'short'), {
    code: 'INVALID_REQUEST',
    details: 'body.new_password',
  })
  await t.rejects(auth.accounts.changeOwnPassword(by, 'wrong', PASSWORD), { code: 'INVALID_CREDENTIALS' })
  await auth.accounts.changeOwnPassword(by, 'admin', PASSWORD)
  const secret = `admin:camera:${PASSWORD}`
  t.same(auth.rtspUsers(), [{ name: 'admin', ha1_md5: md5(secret), ha1_sha256: sha256(secret), cameras: null }])
  t.equal((await caller(source({ token }))).mustChangePassword, false, 'the own session goes on')
  await t.rejects(auth.accounts.changeOwnPassword(by, PASSWORD, PASSWORD), { message: /used before/ })
})

t.test('each kind of credentials, right and wrong', async (t) => {
  const { auth } = await open(t)
  const { token, cookie, user } = await auth.login({ username: 'admin', password: PASSWORD }, HERE, true)
  t.equal(user.must_change_password, false)
  t.match(cookie, /HttpOnly; SameSite=Strict; Secure/)
  const pair = cookie.split(';')[0] ?? ''
  t.match(await auth.authenticate(source({ authorization: `Bearer ${token}` })), { username: 'admin', via: 'bearer' })
  t.match(await auth.authenticate(source({ token })), { via: 'query' })
  t.match(await auth.authenticate(source({ cookie: `a=b; ${pair}` })), { via: 'cookie' })
  t.match(await auth.authenticate(basic('admin', PASSWORD)), { via: 'basic', cameras: null })
  t.equal(await auth.authenticate(source({})), null)
  for (const wrong of [
    source({ authorization: 'Bearer nonsense' }),
    source({ authorization: `Bearer ${token.slice(0, -2)}AA` }),
    source({ authorization: 'Negotiate abc' }),
    basic('admin', 'wrong'),
    basic('nobody', PASSWORD),
  ]) {
    await t.rejects(
      Promise.resolve().then(() => auth.authenticate(wrong)),
      { code: 'INVALID_CREDENTIALS' },
    )
  }
  const write = { method: 'POST', cookie: pair }
  t.match(await auth.authenticate(source({ ...write, origin: 'http://cam:8080' })), { via: 'cookie' })
  t.throws(() => auth.authenticate(source({ ...write, origin: 'http://evil' })), { code: 'PERMISSION_DENIED' })
  t.throws(() => auth.authenticate(source(write)), { code: 'PERMISSION_DENIED' })
})

t.test('a session ends by logout, by time, and with the password', async (t) => {
  const { auth, bus, clock, login, caller } = await open(t)
  const ended: string[] = []
  bus.on('session-ended', ({ sessionId }) => ended.push(sessionId))
  const token = async () => (await login()).token
  const of = (given: string) => caller(source({ token: given }))
  const [first, second, third] = [await token(), await token(), await token()]
  const leaver = await of(first)
  auth.logout({ ...ADMIN, sessionId: leaver.sessionId })
  t.same(ended, [leaver.sessionId])
  await t.rejects(of(first), { code: 'INVALID_CREDENTIALS' })

  const changer = await of(second)
  const other = await of(third)
  await auth.accounts.changeOwnPassword({ ...ADMIN, sessionId: changer.sessionId }, PASSWORD, `${PASSWORD}x`)
  t.same(ended.slice(1), [other.sessionId])
  await t.rejects(of(third), { code: 'INVALID_CREDENTIALS' })
  await t.rejects(Promise.resolve(auth.authenticate(basic('admin', PASSWORD))), { code: 'INVALID_CREDENTIALS' })
  t.ok(await of(second))

  clock.now += 3_600_001
  await t.rejects(of(second), { code: 'INVALID_CREDENTIALS' })
})

t.test('accounts, sessions and keys outlive a restart; secrets lie nowhere in the open', async (t) => {
  const { auth, folder, close, login } = await open(t)
  const { token } = await login()
  const [known] = auth.rtspUsers()
  await close()
  for (const key of ['keys/seal.key', 'keys/token.key']) t.equal(statSync(join(folder, key)).mode & 0o777, 0o600)
  const database = readFileSync(join(folder, 'db/camera.mdb')).toString('latin1')
  for (const secret of [PASSWORD, known?.ha1_md5 ?? '', known?.ha1_sha256 ?? '', token]) {
    t.ok(secret.length > 0)
    t.notOk(database.includes(secret))
  }
  const again = await open(t, { folder, adminPassword: 'Another-Pass-1' })
  t.match(await again.auth.authenticate(source({ token })), { username: 'admin' })
  await t.rejects(again.login('Another-Pass-1'), { code: 'INVALID_CREDENTIALS' }, 'the file counts at the first start only')
})

/** Counts the rounds of bcrypt that are asked for. */
class CountingHasher extends PasswordHasher {
  verified = 0

  override verify(...args: Parameters<PasswordHasher['verify']>): Promise<boolean> {
    this.verified += 1
    return super.verify(...args)
  }
}

t.test('Basic costs no bcrypt round per request, and one for many at once', async (t) => {
  const hasher = new CountingHasher(QUICK_ROUNDS)
  const { auth } = await open(t, { hasher })
  await Promise.all(Array.from({ length: 50 }, () => auth.authenticate(basic('admin', PASSWORD))))
  t.equal(hasher.verified, 1, '50 at once')
  for (let i = 0; i < 200; i++) await auth.authenticate(basic('admin', PASSWORD))
  t.equal(hasher.verified, 1, '200 one after the other')
  await t.rejects(Promise.resolve(auth.authenticate(basic('admin', `${PASSWORD}x`))), { code: 'INVALID_CREDENTIALS' })
  t.equal(hasher.verified, 2, 'another password is looked at')
})

t.test('logins in parallel leave the event loop to others', async (t) => {
  const { login } = await open(t, { hasher: new PasswordHasher() })
  // A clock would measure the machine: what counts is that others get their turn between.
  let turns = 0
  let counting = setImmediate(function count() {
    turns += 1
    counting = setImmediate(count)
  })
  await Promise.all(Array.from({ length: 8 }, () => login()))
  clearImmediate(counting)
  t.ok(turns > 1000, `${turns} turns of the event loop`)
})
