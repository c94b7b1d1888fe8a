/** Back to the state of delivery; the accounts come along where that is asked for. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Secret, TOTP } from 'otpauth'
import t, { type Test } from 'tap'
import { type Api, call, login, until } from '../../support/api.ts'
import { type Connection, DATA } from '../../support/fake-system.ts'
import { ADMIN_PASSWORD, startQuickServer, type TestServer } from '../../support/server.ts'
import { INFO, slots, startAppliance } from '../updates/harness.ts'

const PASSWORD = 'Battery-Staple-7'
const PATH = '/api/system/factory-reset'
const args = ['--rate-limits', 'off', '--camera', 'test:640x360@30']

/** What the device does before it starts again. */
function wipe(dataDir: string): void {
  const kept = join(dataDir, 'persistent/users-carry-over.json')
  const beside = `${dataDir}.kept`
  const carried = existsSync(kept)
  if (carried) renameSync(kept, beside)
  rmSync(dataDir, { recursive: true })
  mkdirSync(join(dataDir, 'persistent'), { recursive: true, mode: 0o700 })
  if (carried) renameSync(beside, kept)
}

const password = (server: TestServer, username: string, more: object = {}) =>
  call(`${server.base}/api/login`, 'POST', {}, { username, password: username === 'admin' ? ADMIN_PASSWORD : PASSWORD, ...more })

/** The system service does not do what it is asked for, but takes it back. */
const onlyOff =
  (answer: (connection: Connection) => void) =>
  ([what]: readonly string[], connection: Connection): void =>
    what === 'off' ? connection.say('done') : answer(connection)

const alerts = async (api: Api, type: string) => (await api.get(`/api/audit?action=alert.${type}`)).body.entries

/** HTTP Digest with the secret that is sealed in the store. */
async function digest(server: TestServer, username: string): Promise<number> {
  const url = `${server.base}/api/status`
  const challenge = (await fetch(url)).headers.get('www-authenticate') ?? ''
  const nonce = /nonce="([^"]+)"/.exec(challenge)?.[1]
  const realm = /realm="([^"]+)"/.exec(challenge)?.[1]
  const md5 = (...parts: unknown[]) => createHash('md5').update(parts.join(':')).digest('hex')
  const response = md5(md5(username, realm, PASSWORD), nonce, '00000001', 'c', 'auth', md5('GET', '/api/status'))
  const fields = `username="${username}", realm="${realm}", nonce="${nonce}", uri="/api/status", response="${response}"`
  const authorization = `Digest ${fields}, algorithm=MD5, qop=auth, nc=00000001, cnonce="c"`
  return (await fetch(url, { headers: { authorization } })).status
}

t.test('a factory reset', async (t) => {
  const { api, server, system } = await startAppliance(t, { 'factory-reset': ['done'] })
  const file = join(server.dataDir, 'persistent/users-carry-over.json')
  await api.post('/api/users', { username: 'eve', password: PASSWORD, role: 'operator', cameras: [0], protocols: ['rtsp'] })
  await api.post('/api/users', { username: 'bob', password: PASSWORD, role: 'admin' })
  const bob = await login(server, 'bob', PASSWORD)
  const { secret } = (await bob.post('/api/auth/totp')).body
  const totp = new TOTP({ secret: Secret.fromBase32(String(secret)) })
  const { recovery_codes: recovery } = (await bob.post('/api/auth/totp/verify', { otp: totp.generate() })).body
  const [code] = recovery as unknown as string[]
  const wishes = () => system.asked('factory-reset').filter((line) => !line.endsWith(' off'))

  await t.test('only when it is confirmed', async (t) => {
    for (const body of [{}, { confirm: false }, { confirm: false, preserve_users: true }])
      t.match(await api.post(PATH, body), { status: 400, body: { error: { code: 'INVALID_REQUEST', details: 'body.confirm' } } })
    t.match(await api.post(PATH, { confirm: 'yes' }), { status: 400 })
    t.same([wishes(), existsSync(file)], [[], false])
  })

  await t.test('not while it is open which release would do it', async (t) => {
    const told = (...lines: string[]) => system.answer('slots', [...slots().slice(0, -1), ...lines, 'done'])
    const refused = async (message: RegExp) =>
      t.match(await api.post(PATH, { confirm: true, preserve_users: true }), {
        status: 409,
        body: { error: { code: 'CONFLICT', message, details: 'pending' } },
      })
    told('data pending slot=B version=2.0.0 state=installed')
    await refused(/restart into it first, or call it off by a rollback/)
    told('data pending slot=B version=2.0.0 state=installing')
    await refused(/is being installed/)
    told('data pending slot=A version=1.2.3 state=installed')
    await refused(/on trial/)
    system.answer('slots', ['failed RAUC no answer'])
    system.answer('info', [DATA({ ...INFO, pending: 'B' }), 'done'])
    t.match(await api.post(PATH, { confirm: true }), { status: 503, body: { error: { details: 'RAUC' } } })
    system.answer('info', [DATA(INFO), 'done'])
    t.same([wishes(), existsSync(file), system.asked('reboot')], [[], false, []])
    system.answer('slots', slots())
  })

  await t.test('what the system refuses leaves nothing; a RAUC that is broken is no reason to refuse', async (t) => {
    system.answer('slots', ['failed RAUC no answer'])
    system.answer(
      'factory-reset',
      onlyOff(({ say }) => say('failed IO the request cannot be written')),
    )
    t.match(await api.post(PATH, { confirm: true, preserve_users: true }), {
      status: 503,
      body: { error: { message: 'the request cannot be written', details: 'IO' } },
    })
    t.equal(existsSync(file), false)
    t.equal(system.asked('factory-reset').at(-1), 'factory-reset off', 'it may be written all the same')
    t.same(system.asked('reboot'), [])
    system.answer('slots', slots())
  })

  await t.test('asked for with the accounts: the answer, then the restart', async (t) => {
    system.answer('factory-reset', (_args, { say }) => {
      t.equal(statSync(file).mode & 0o777, 0o600, 'the accounts lie ready before')
      t.notMatch(readFileSync(file, 'utf8'), String(secret))
      say('done')
    })
    t.match(await api.post(PATH, { confirm: true, preserve_network: true, preserve_users: true }), {
      status: 200,
      body: { success: true, restarting: true },
    })
    t.equal(system.asked('factory-reset').at(-1), 'factory-reset network,users')
    const { entries } = (await api.get('/api/audit?action=config.factory_reset_requested')).body
    t.match(entries, [{ username: 'admin', data: { preserve_network: true, preserve_users: true } }])
    await until(
      () => system.asked('reboot').length,
      (times) => times === 1,
      'the restart',
    )
  })

  await t.test('a restart of the server in between takes nothing away', async (t) => {
    await server.stop()
    const again = await startQuickServer(t, { dataDir: server.dataDir, args })
    t.equal(existsSync(file), true)
    await again.stop()
  })

  await t.test('afterwards the accounts are as they were, with all their secrets', async (t) => {
    wipe(server.dataDir)
    const fresh = await startQuickServer(t, { dataDir: server.dataDir, args, factory: true })
    t.equal(existsSync(file), false, 'taken in')
    const admin = await login(fresh)
    const { users } = (await admin.get('/api/users')).body
    t.match(users, [
      { username: 'admin', role: 'admin', must_change_password: false },
      { username: 'bob', two_factor: true },
      { username: 'eve', role: 'operator', cameras: [0], protocols: ['rtsp'] },
    ])
    t.equal(await digest(fresh, 'eve'), 200)
    t.match(await password(fresh, 'bob'), { status: 401, body: { error: { code: 'OTP_REQUIRED' } } })
    t.match(await password(fresh, 'bob', { otp: code }), { status: 200 }, 'a recovery code from before')
    t.match(await password(fresh, 'admin', { password: 'admin' }), { status: 401 })
    t.equal((await admin.get('/api/recordings')).status, 200)
    await fresh.stop()
  })
})

t.test('without the accounts an older copy of them goes', async (t) => {
  const { api, server, system } = await startAppliance(t, { 'factory-reset': ['done'] })
  const file = join(server.dataDir, 'persistent/users-carry-over.json')
  writeFileSync(file, '{}')
  t.match(await api.post(PATH, { confirm: true }), { status: 200 })
  t.equal(system.asked('factory-reset').at(-1), 'factory-reset -')
  t.equal(existsSync(file), false)
  await server.stop()
  wipe(server.dataDir)
  const fresh = await startQuickServer(t, { dataDir: server.dataDir, args, factory: true })
  t.match(await password(fresh, 'admin', { password: 'admin' }), { status: 200, body: { must_change_password: true } })
})

t.test('what is answered as failed is withdrawn', async (t) => {
  const { api, server, system } = await startAppliance(t)
  const file = join(server.dataDir, 'persistent/users-carry-over.json')
  system.answer('factory-reset', ([what], { say, close }) => {
    if (what !== 'off') return close()
    say('data users')
    say('done')
  })
  t.match(await api.post(PATH, { confirm: true, preserve_users: true }), { status: 500 })
  t.same(system.asked('factory-reset').slice(-2), ['factory-reset users', 'factory-reset off'])
  t.equal(existsSync(file), false)
  t.match(await alerts(api, 'factory_reset_withdrawn'), [{ data: { why: /has failed/ } }])
  system.answer('factory-reset', ['done'])
  t.match(await api.post(PATH, { confirm: true }), { status: 200 }, 'it can be asked for again')
})

t.test('what a server leaves behind that ended before the restart is withdrawn by the next one', async (t) => {
  const { api, system } = await startAppliance(t, { 'factory-reset': ['data network,users', 'done'] })
  const entries = await until(
    () => alerts(api, 'factory_reset_withdrawn'),
    (entries) => (entries as unknown as unknown[]).length > 0,
    'the alert',
  )
  t.match(entries, [{ username: null, data: { why: /started anew/ } }])
  t.same([system.asked('factory-reset'), system.asked('reboot')], [['factory-reset off'], []])
})

t.test('what cannot be withdrawn yet: nothing restarts, it is tried again, the accounts lie ready as they are', async (t) => {
  const { api, server, system } = await startAppliance(t)
  const file = join(server.dataDir, 'persistent/users-carry-over.json')
  const carried = () => (JSON.parse(readFileSync(file, 'utf8')).users as { username: string }[]).map(({ username }) => username)
  system.answer('factory-reset', (_args, { close }) => close())
  t.match(await api.post(PATH, { confirm: true, preserve_users: true }), { status: 500 })
  t.match(await alerts(api, 'factory_reset_not_withdrawn'), [{ data: { why: /has failed/ } }])
  const busy = { status: 409, body: { error: { message: /being withdrawn/, details: 'busy' } } }
  t.match(await api.post('/api/system/reboot', { force: true }), busy)
  t.match(await api.post(PATH, { confirm: true }), busy)
  t.same([carried(), system.asked('reboot')], [['admin'], []])
  const eve = await api.post('/api/users', { username: 'eve', password: PASSWORD, role: 'operator' })
  t.equal(eve.status, 200)
  t.same(carried(), ['admin', 'eve'])
  t.equal((await api.delete('/api/users/eve')).status, 200)
  t.same(carried(), ['admin'], 'who is removed does not come back')
  const left = readFileSync(file)

  system.answer('factory-reset', ['data users', 'done'])
  await until(
    () => alerts(api, 'factory_reset_withdrawn'),
    (entries) => (entries as unknown as unknown[]).length === 1,
    'the withdrawal',
  )
  t.equal(existsSync(file), false)
  t.equal((await api.post('/api/system/reboot', { force: true })).status, 200)
  await server.stop()

  writeFileSync(file, left)
  const again = await startQuickServer(t, { dataDir: server.dataDir, args })
  t.same(carried(), ['admin'], 'the same boot')
  await again.stop()

  // The next boot comes without a reset, or is the one after it: the power has gone before the file was removed.
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), boot_id: 'an earlier one' }))
  const later = await startQuickServer(t, { dataDir: server.dataDir, args })
  t.equal(existsSync(file), false)
  t.equal((await (await login(later)).get('/api/users')).status, 200)
  await later.stop()
})

/** A device that nobody could enter would be worse. */
async function factoryAccountInstead(t: Test, content: string): Promise<void> {
  const { dataDir, stop } = await startQuickServer(t, { args })
  await stop()
  wipe(dataDir)
  writeFileSync(join(dataDir, 'persistent/users-carry-over.json'), content)
  const fresh = await startQuickServer(t, { dataDir, args, factory: true })
  t.match(await password(fresh, 'admin', { password: 'admin' }), { status: 200, body: { must_change_password: true } })
  t.match(fresh.log.join('\n'), /cannot be read/)
  t.same(
    readdirSync(join(dataDir, 'persistent')).filter((name) => name.startsWith('users')),
    [],
  )
  await fresh.stop()
}

t.test('a copy of the accounts that is damaged gives the factory account', (t) => factoryAccountInstead(t, '{"format":'))
