import { mkdtempSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { Auth } from '../../../app/server/auth/index.ts'
import { Bus } from '../../../app/server/bus.ts'
import type { Caller, CredentialSource } from '../../../app/server/http/index.ts'
import { Store } from '../../../app/server/store/index.ts'

const log = pino({ level: 'silent' })
const PASSWORD = 'Correct-Horse-9'

async function open(t: Test, options: { adminPassword?: string; folder?: string } = {}) {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'auth-'))
  const clock = { now: Date.now() }
  const store = new Store(join(folder, 'db'), log)
  const bus = new Bus()
  const auth = new Auth(
    store,
    bus,
    { keyFolder: join(folder, 'keys'), adminPassword: options.adminPassword, sessionLifetimeMs: 3_600_000 },
    log,
    () => clock.now,
  )
  await store.start()
  await auth.start()
  const close = async () => {
    auth.stop()
    await store.stop()
  }
  t.teardown(close)
  return { auth, bus, folder, clock, close }
}

function source(headers: Partial<CredentialSource>): CredentialSource {
  const nothing = { authorization: '', cookie: '', origin: '', token: '' }
  return { method: 'GET', url: '/', host: 'cam:8080', address: '127.0.0.1', secure: false, ...nothing, ...headers }
}

function basic(username: string, password: string): CredentialSource {
  return source({ authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` })
}

t.test('the factory account must change its password; then RTSP knows it', async (t) => {
  const { auth } = await open(t)
  const { user, token } = await auth.login('admin', 'admin', '127.0.0.1', false)
  t.equal(user.must_change_password, true)
  t.same(auth.users.rtspUsers(), [], 'the factory password opens no stream')
  const caller = (await auth.authenticate(source({ authorization: `Bearer ${token}` }))) as Caller
  t.equal(caller.mustChangePassword, true)
  await t.rejects(auth.changePassword(caller, 'admin', 'admin', 'short'), {
    code: 'INVALID_REQUEST',
    details: 'body.new_password',
  })
  await t.rejects(auth.changePassword(caller, 'admin', 'wrong', PASSWORD), { code: 'INVALID_CREDENTIALS' })
  await auth.changePassword(caller, 'admin', 'admin', PASSWORD)
  const { createHash } = await import('node:crypto')
  const ha1 = createHash('md5').update(`admin:camera:${PASSWORD}`).digest('hex')
  t.same(auth.users.rtspUsers(), [{ name: 'admin', ha1 }])
  t.equal(((await auth.authenticate(source({ token }))) as Caller).mustChangePassword, false, 'the own session goes on')
  await t.rejects(auth.changePassword(caller, 'admin', PASSWORD, PASSWORD), { message: /used before/ })
})

t.test('each kind of credentials, right and wrong', async (t) => {
  const { auth } = await open(t, { adminPassword: PASSWORD })
  const { token, cookie, user } = await auth.login('admin', PASSWORD, '127.0.0.1', true)
  t.equal(user.must_change_password, false)
  t.match(cookie, /HttpOnly; SameSite=Strict; Secure/)
  const pair = cookie.split(';')[0] ?? ''
  t.match(await auth.authenticate(source({ authorization: `Bearer ${token}` })), { username: 'admin', via: 'bearer' })
  t.match(await auth.authenticate(source({ token })), { via: 'query' })
  t.match(await auth.authenticate(source({ cookie: `a=b; ${pair}` })), { via: 'cookie' })
  t.match(await auth.authenticate(basic('admin', PASSWORD)), { via: 'basic' })
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
  const { auth, bus, clock } = await open(t, { adminPassword: PASSWORD })
  const ended: string[] = []
  bus.on('session-ended', ({ sessionId }) => ended.push(sessionId))
  const login = async () => (await auth.login('admin', PASSWORD, '127.0.0.1', false)).token
  const caller = async (token: string) => (await auth.authenticate(source({ token }))) as Caller
  const [first, second, third] = [await login(), await login(), await login()]
  const leaver = await caller(first)
  auth.logout(leaver)
  t.same(ended, [leaver.sessionId])
  await t.rejects(caller(first), { code: 'INVALID_CREDENTIALS' })

  const changer = await caller(second)
  const other = await caller(third)
  await auth.changePassword(changer, 'admin', PASSWORD, `${PASSWORD}x`)
  t.same(ended.slice(1), [other.sessionId])
  await t.rejects(caller(third), { code: 'INVALID_CREDENTIALS' })
  await t.rejects(Promise.resolve(auth.authenticate(basic('admin', PASSWORD))), { code: 'INVALID_CREDENTIALS' })
  t.ok(await caller(second))

  clock.now += 3_600_001
  await t.rejects(caller(second), { code: 'INVALID_CREDENTIALS' })
})

t.test('accounts, sessions and keys outlive a restart; secrets lie nowhere in the open', async (t) => {
  const { auth, folder, close } = await open(t, { adminPassword: PASSWORD })
  const { token } = await auth.login('admin', PASSWORD, '127.0.0.1', false)
  const [{ ha1 } = { ha1: '' }] = auth.users.rtspUsers()
  await close()
  for (const key of ['keys/seal.key', 'keys/token.key']) t.equal(statSync(join(folder, key)).mode & 0o777, 0o600)
  const database = readFileSync(join(folder, 'db/camera.mdb')).toString('latin1')
  for (const secret of [PASSWORD, ha1, token]) t.notOk(database.includes(secret))
  const again = await open(t, { folder, adminPassword: 'Another-Pass-1' })
  t.match(await again.auth.authenticate(source({ token })), { username: 'admin' })
  await t.rejects(
    again.auth.login('admin', 'Another-Pass-1', '::1', false),
    { code: 'INVALID_CREDENTIALS' },
    'the file counts at the first start only',
  )
})

t.test('Basic costs no bcrypt round per request', async (t) => {
  const { auth } = await open(t, { adminPassword: PASSWORD })
  await auth.authenticate(basic('admin', PASSWORD))
  const before = process.cpuUsage()
  for (let i = 0; i < 200; i++) await auth.authenticate(basic('admin', PASSWORD))
  const { user, system } = process.cpuUsage(before)
  t.ok(user + system < 200_000, `200 requests took ${user + system} µs, one bcrypt round alone takes about 200,000`)
})
