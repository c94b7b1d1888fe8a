import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Secret, TOTP } from 'otpauth'
import t from 'tap'
import { MAX_FAILURES } from '../../../app/server/auth/lockout.ts'
import { call, login as loginAt } from '../../support/api.ts'
import { ADMIN_PASSWORD, startQuickServer } from '../../support/server.ts'
import { ADMIN, basic, open, PASSWORD } from './harness.ts'

const STEP = 30_000

function codeAt(secret: string, timestamp: number): string {
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp })
}

t.test('enrolment, login with codes that count once, recovery codes, removal', async (t) => {
  const { auth, clock, events, folder, login } = await open(t)
  const { secret, uri, qr_svg } = auth.twoFactor.enrol(ADMIN)
  t.match(uri, /^otpauth:\/\/totp\/Camera:admin\?/)
  t.match(qr_svg, /^<svg [\s\S]*<\/svg>\s*$/)
  t.ok(await login(), 'nothing is required before the first code')
  t.throws(() => auth.twoFactor.confirm(ADMIN, '000000'), { code: 'INVALID_REQUEST' })
  const recovery = auth.twoFactor.confirm(ADMIN, codeAt(secret, clock.now))
  t.equal(new Set(recovery).size, 10)
  t.throws(() => auth.twoFactor.enrol(ADMIN), { code: 'CONFLICT' })

  const withCode = (otp?: string) => login(PASSWORD, 'admin', otp)
  const wrong = { code: 'INVALID_CREDENTIALS' }
  await t.rejects(withCode(), { code: 'OTP_REQUIRED', status: 401 })
  await t.rejects(withCode(codeAt(secret, clock.now)), wrong, 'the code of the enrolment is used up')
  clock.now += 2 * STEP
  t.ok(await withCode(codeAt(secret, clock.now - STEP)), 'one step late')
  t.ok(await withCode(codeAt(secret, clock.now)))
  await t.rejects(withCode(codeAt(secret, clock.now)), wrong, 'twice')
  t.ok(await withCode(codeAt(secret, clock.now + STEP)), 'one step early')
  clock.now += 20 * STEP
  await t.rejects(withCode(codeAt(secret, clock.now - 2 * STEP)), wrong, 'two steps late')
  const [first = '', second = ''] = recovery
  t.ok(await withCode(first.toUpperCase()))
  await t.rejects(withCode(first), wrong, 'a recovery code counts once')

  await t.rejects(Promise.resolve(auth.authenticate(basic('admin', PASSWORD))), { code: 'OTP_REQUIRED' })
  t.equal(auth.rtspUsers().length, 1, 'RTSP stays by its grant')
  const database = readFileSync(join(folder, 'db/camera.mdb')).toString('latin1')
  for (const text of [secret, second]) t.notOk(database.includes(text))

  await t.rejects(auth.twoFactor.remove(ADMIN, PASSWORD, '123456'), wrong)
  await auth.twoFactor.remove(ADMIN, PASSWORD, second)
  t.ok(await login())
  t.match(
    events.map(({ type }) => type).filter((type) => type.startsWith('totp')),
    ['totp_enabled', 'totp_disabled'],
  )
})

t.test('wrong codes lock the account, although each came with the right password', async (t) => {
  const { auth, clock } = await open(t)
  const { secret } = auth.twoFactor.enrol(ADMIN)
  auth.twoFactor.confirm(ADMIN, codeAt(secret, clock.now))
  const attempt = (otp: string, i: number) => auth.login({ username: 'admin', password: PASSWORD, otp }, `203.0.113.${i}`, false)
  for (let i = 0; i < MAX_FAILURES; i++) await t.rejects(attempt('abcdef', i), { code: 'INVALID_CREDENTIALS' })
  await t.rejects(attempt(codeAt(secret, clock.now + STEP), 99), { code: 'ACCOUNT_LOCKED' })
})

t.test('through the API; an admin takes a lost factor away', async (t) => {
  const server = await startQuickServer(t)
  const api = await loginAt(server)
  const { body } = await api.post('/api/auth/totp')
  t.match(String(body.qr_svg), /<svg/)
  const secret = String(body.secret)
  // The code of a step ago is accepted still, and leaves the present one for the login.
  const confirmed = await api.post('/api/auth/totp/verify', { otp: codeAt(secret, Date.now() - STEP) })
  t.match(confirmed, { status: 200, body: { enabled: true } })
  t.match(await api.get('/api/users'), { body: { users: [{ two_factor: true }] } })
  const credentials = { username: 'admin', password: ADMIN_PASSWORD }
  const post = (more: object) => call(`${server.base}/api/login`, 'POST', {}, { ...credentials, ...more })
  t.match(await post({}), { status: 401, body: { error: { code: 'OTP_REQUIRED' } } })
  t.match(await post({ otp: codeAt(secret, Date.now() + STEP) }), { status: 200 })
  const authorization = `Basic ${Buffer.from(`admin:${ADMIN_PASSWORD}`).toString('base64')}`
  t.match(await call(`${server.base}/api/status`, 'GET', { authorization }), {
    status: 401,
    body: { error: { code: 'OTP_REQUIRED' } },
  })
  t.match(await api.put('/api/users/admin', { two_factor: false }), { status: 200, body: { two_factor: false } })
  t.match(await post({}), { status: 200 })
})
