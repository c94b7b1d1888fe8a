import { once } from 'node:events'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { type Api, call, login, until } from '../../support/api.ts'
import { RtspClient } from '../../support/rtsp-client.ts'
import { startQuickServer, type TestServer } from '../../support/server.ts'

const PASSWORD = 'Battery-Staple-7'
const PASSWORDS = [1, 2].map((n) => `Battery-Staple-${n}0`)

function basic(username: string, password = PASSWORD): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` }
}

async function create(api: Api, username: string, more: Record<string, unknown> = {}): Promise<void> {
  const answer = await api.post('/api/users', { username, password: PASSWORD, role: 'viewer', ...more })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
}

/** An open WebSocket; resolves to a promise of the code that it is closed with. */
async function socket(t: Test, server: TestServer, headers: Record<string, string>): Promise<{ closed: Promise<number> }> {
  const ws = new WebSocket(`ws://127.0.0.1:${server.ports.http}/api/v1`, { headers })
  t.teardown(() => ws.terminate())
  const closed = once(ws, 'close').then(([code]) => Number(code))
  await once(ws, 'message')
  return { closed }
}

/** For the tests that leave its admin alone and are hardly ever refused, which locks an address; their accounts have names of their own. */
let server: TestServer
let admin: Api

t.before(async () => {
  server = await startQuickServer(t, { args: ['--rate-limits', 'off'] })
  admin = await login(server)
})

t.test('accounts are created, listed, changed and deleted', async (t) => {
  const body = { username: 'jo.doe-1', password: PASSWORD, email: 'jo@example.org', role: 'Operator' }
  t.match(await admin.post('/api/v1/users', body), {
    status: 200,
    body: {
      status: 'success',
      data: { success: true, username: 'jo.doe-1', role: 'operator', protocols: ['rtsp'], cameras: null },
    },
  })
  t.match(await admin.get('/api/users'), {
    status: 200,
    body: {
      total: 2,
      users: [
        { username: 'admin', role: 'admin', two_factor: false, enabled: true, locked: false },
        { username: 'jo.doe-1', email: 'jo@example.org', must_change_password: false, created_at: String },
      ],
    },
  })
  t.notMatch(JSON.stringify((await admin.get('/api/users')).body), /hash|sealed/)
  for (const username of ['jo.doe-1', 'JO.DOE-1']) {
    t.match(await admin.post('/api/users', { ...body, username }), { status: 409, body: { error: { code: 'CONFLICT' } } })
  }
  const bad: [Record<string, unknown>, string][] = [
    [{ username: 'a b' }, 'body.username'],
    [{ username: 'x'.repeat(65) }, 'body.username'],
    [{ username: 'share-1' }, 'body.username'],
    [{ username: 'kim', password: 'weak' }, 'body.password'],
    [{ username: 'kim', role: 'root' }, 'body.role'],
    [{ username: 'kim', email: 'no address' }, 'body.email'],
    [{ username: 'kim', protocols: ['ftp'] }, 'body.protocols.0'],
    [{ username: 'kim', cameras: ['0'] }, 'body.cameras'],
    [{ username: 'kim', admin: true }, 'body.admin'],
  ]
  for (const [change, field] of bad) {
    const answer = await admin.post('/api/users', { ...body, ...change })
    t.match(answer, { status: 400, body: { error: { code: 'INVALID_REQUEST', details: new RegExp(`^${field}`) } } }, field)
  }
  t.match(await admin.put('/api/users/jo.doe-1', { role: 'Viewer', email: '' }), {
    status: 200,
    body: { role: 'viewer', email: '' },
  })
  t.match(await admin.put('/api/users/nobody', { role: 'viewer' }), { status: 404 })
  t.match(await admin.delete('/api/users/jo.doe-1'), { status: 200 })
  t.match(await admin.delete('/api/users/jo.doe-1'), { status: 404 })
  t.match(await call(`${server.base}/api/status`, 'GET', basic('jo.doe-1')), { status: 401 })
})

t.test('only admins manage accounts; each may ask for the own permissions', async (t) => {
  const held: Record<string, RegExp> = {
    guest: /^Status_r,Image_r$/,
    viewer: /Media_r,Storage_r$/,
    operator: /Media_rw,Storage_rw,Shares_rw$/,
    admin: /Users_rw,Network_rw,System_rw/,
  }
  for (const [role, permissions] of Object.entries(held)) {
    await create(admin, `some-${role}`, { role })
    const api = await login(server, `some-${role}`, PASSWORD)
    const own = await api.get(`/api/users/some-${role}/permissions`)
    t.match(own, { status: 200, body: { username: `some-${role}`, role, cameras: null } })
    t.match(Object.values(own.body.permissions ?? {}).join(), permissions)
    const expected = role === 'admin' ? 200 : 403
    t.match(await api.get('/api/users/admin/permissions'), { status: expected })
    t.match(await api.get('/api/users'), { status: expected })
    t.match(await api.put('/api/users/some-guest', { email: 'a@b' }), { status: expected })
    t.match(await api.put(`/api/users/some-${role}`, { role: 'admin' }), { status: expected }, 'nobody promotes himself')
  }
  t.match(await admin.get('/api/users/nobody/permissions'), { status: 404 })
})

t.test('the last enabled admin stays', async (t) => {
  const server = await startQuickServer(t)
  const admin = await login(server)
  const conflict = { status: 409, body: { error: { code: 'CONFLICT' } } }
  t.match(await admin.put('/api/users/admin', { role: 'operator' }), conflict)
  t.match(await admin.put('/api/users/admin', { enabled: false }), conflict)
  t.match(await admin.delete('/api/users/admin'), conflict)
  await create(admin, 'second', { role: 'Administrator' })
  t.match(await admin.put('/api/users/second', { enabled: false }), { status: 200 })
  t.match(await admin.delete('/api/users/admin'), conflict, 'a disabled admin does not count')
  t.match(await admin.put('/api/users/second', { enabled: true }), { status: 200 })
  const second = await login(server, 'second', PASSWORD)
  t.match(await second.delete('/api/users/admin'), { status: 200 })
  t.match(await admin.get('/api/status'), { status: 401 })
})

t.test('an admin who takes his own rights away has no socket left that has them', async (t) => {
  const server = await startQuickServer(t)
  const admin = await login(server)
  await create(admin, 'second', { role: 'admin' })
  const { closed } = await socket(t, server, { authorization: `Bearer ${admin.token}` })
  t.match(await admin.put('/api/users/admin', { role: 'viewer' }), { status: 200 })
  t.equal(await closed, 1008)
  t.match(await admin.get('/api/status'), { status: 401 })
})

t.test('what takes a right away ends sessions and sockets of every kind at once', async (t) => {
  await create(admin, 'sam', { role: 'operator', protocols: ['rtsp', 'onvif'] })
  let password = PASSWORD
  const changes: [string, Record<string, unknown>][] = [
    ['role', { role: 'viewer' }],
    ['protocols', { protocols: ['rtsp'] }],
    ['cameras', { cameras: [0, 1] }],
    ['password', { password: 'Another-Staple-8' }],
    ['disable', { enabled: false }],
  ]
  for (const [name, change] of changes) {
    const api = await login(server, 'sam', password)
    const bearer = await socket(t, server, { authorization: `Bearer ${api.token}` })
    const direct = await socket(t, server, basic('sam', password))
    t.match(await admin.put('/api/users/sam', change), { status: 200 }, name)
    t.equal(await bearer.closed, 1008, `${name}: the socket of the session`)
    t.equal(await direct.closed, 1008, `${name}: the socket opened with Basic`)
    t.match(await api.get('/api/status'), { status: 401 }, `${name}: the token`)
    if (typeof change.password === 'string') password = change.password
  }
  t.match(await call(`${server.base}/api/status`, 'GET', basic('sam', password)), { status: 401 }, 'a disabled account')
  const answer = await call(`${server.base}/api/login`, 'POST', {}, { username: 'sam', password })
  t.match(answer, { status: 401, body: { error: { code: 'INVALID_CREDENTIALS' } } })
  t.match(await admin.put('/api/users/sam', { email: 'sam@example.org', enabled: true }), { status: 200 })
  const again = await login(server, 'sam', password)
  t.match(await admin.put('/api/users/sam', { email: '' }), { status: 200 })
  t.match(await again.get('/api/status'), { status: 200 }, 'another address of mail ends nothing')
})

t.test('RTSP: open to those with the grant, closed at once when it goes', async (t) => {
  const server = await startQuickServer(t)
  const admin = await login(server)
  await create(admin, 'nvr')
  const play = () => RtspClient.play(server, '/stream1', 'nvr', PASSWORD)
  const ends: [string, Record<string, unknown>, Record<string, unknown>][] = [
    ['withdrawn', { protocols: [] }, { protocols: ['rtsp'], password: 'Other-Staple-3' }],
    ['a guest', { role: 'guest' }, { role: 'viewer' }],
    ['another role', { role: 'operator' }, {}],
    ['disabled', { enabled: false }, {}],
  ]
  let watching = await play()
  for (const [name, change, back] of ends) {
    await watching.gotPackets(1)
    t.match(await admin.put('/api/users/nvr', change), { status: 200 })
    await until(() => watching.closed, Boolean, `the end of the connection: ${name}`)
    if (name === 'disabled') break
    if (name !== 'another role') await t.rejects(play(), { message: /401/ }, name)
    const password = 'Other-Staple-3'
    if (Object.keys(back).length > 0) t.match(await admin.put('/api/users/nvr', back), { status: 200 })
    watching = await RtspClient.play(server, '/stream1', 'nvr', password)
  }
})

t.test('a grant without a password acts from the next login', async (t) => {
  const server = await startQuickServer(t)
  const admin = await login(server)
  await create(admin, 'late', { protocols: [] })
  const play = () => RtspClient.play(server, '/stream1', 'late', PASSWORD)
  await t.rejects(play(), { message: /401/ })
  await admin.put('/api/users/late', { protocols: ['rtsp'] })
  await login(server, 'late', PASSWORD)
  const client = await until(
    () => play().catch(() => undefined),
    (made) => made !== undefined,
    'RTSP after the login',
  )
  await client?.teardown()
})

t.test('a password of the last five is refused, whoever sets it', async (t) => {
  await create(admin, 'kim', { protocols: [] })
  for (const password of PASSWORDS) t.match(await admin.put('/api/users/kim', { password }), { status: 200 })
  for (const password of [PASSWORD, ...PASSWORDS]) {
    t.match(await admin.put('/api/users/kim', { password }), { status: 400, body: { error: { details: 'body.password' } } })
  }
  t.match(await admin.put('/api/users/kim', { password: 'Fresh-Staple-1', must_change_password: true }), { status: 200 })
  const kim = await login(server, 'kim', 'Fresh-Staple-1')
  t.match(await kim.get('/api/status'), { status: 403, body: { error: { code: 'PASSWORD_CHANGE_REQUIRED' } } })
})

t.test('a user limited to some cameras sees and controls no others', async (t) => {
  const server = await startQuickServer(t, { args: ['--camera', 'test:640x480@15', '--camera', 'test:640x480@15'] })
  const admin = await login(server)
  await create(admin, 'east', { role: 'operator', cameras: [1] })
  const api = await login(server, 'east', PASSWORD)
  const denied = { status: 403, body: { error: { code: 'PERMISSION_DENIED' } } }
  const recording = await admin.post('/api/recording/start', { camera: 0 })
  await admin.post('/api/recording/stop', { camera: 0 })
  const id = String(recording.body.recording_id)
  const calls: [string, () => Promise<unknown>][] = [
    ['still', () => api.get('/image?camera=0')],
    ['still of the active camera', () => api.get('/image')],
    ['settings', () => api.get('/api/camera/settings?camera=0')],
    ['change', () => api.put('/api/camera/settings', { camera: 0, brightness: 10 })],
    ['info', () => api.get('/api/camera/info?camera=0')],
    ['snapshot', () => api.post('/api/camera/snapshot', { camera: 0 })],
    ['stop', () => api.post('/api/camera/stop', { camera: 0 })],
    ['record', () => api.post('/api/recording/start', {})],
    ['recording status', () => api.get('/api/recording/status?camera=0')],
    ['download', () => api.get(`/api/recordings/${id}`)],
    ['delete', () => api.delete(`/api/recordings/${id}`)],
  ]
  for (const [name, attempt] of calls) t.match(await attempt(), denied, name)
  t.match(await api.get('/api/recordings'), { status: 200, body: { total: 0, recordings: [] } })
  t.match(await admin.get('/api/recordings'), { body: { total: 1 } })
  const status = (await api.get('/api/camera/status')).body.cameras
  t.match(status, [{ id: 1 }])
  t.equal(Object.keys(status ?? {}).length, 1)
  const streams = Object.values((await api.get('/api/streams')).body.streams ?? {})
  t.ok(streams.length > 0 && streams.every((stream) => Number(stream.camera) === 1))
  t.match(await api.put('/api/camera/settings', { camera: 1, brightness: 10 }), { status: 200 })
  t.equal((await api.bytes('/image?camera=1')).status, 200)

  const ws = new WebSocket(`ws://127.0.0.1:${server.ports.http}/api/v1?token=${api.token}`)
  t.teardown(() => ws.terminate())
  const next = async () => JSON.parse(String((await once(ws, 'message'))[0])) as Record<string, unknown>
  const greeting = await next()
  t.notOk('brightness' in greeting, 'the state of the active camera is not theirs')
  t.ok('recordingMode' in greeting)
  for (const message of [{ brightness: 1 }, { get: ['brightness'] }, { snap: true }]) {
    const answer = next()
    ws.send(JSON.stringify(message))
    t.match(await answer, { error: { code: 'PERMISSION_DENIED' } })
  }
})

t.test('five wrong passwords lock the account and the address; an admin unlocks the account', async (t) => {
  const server = await startQuickServer(t)
  const admin = await login(server)
  await create(admin, 'lee')
  const attempt = (password: string) => call(`${server.base}/api/login`, 'POST', {}, { username: 'lee', password })
  for (let i = 0; i < 5; i++) t.match(await attempt('wrong'), { status: 401 })
  const locked = await attempt(PASSWORD)
  t.match(locked, { status: 403, body: { error: { code: 'ACCOUNT_LOCKED' } } })
  t.ok(Number(locked.headers.get('retry-after')) > 0)
  t.match(await admin.get('/api/users'), { body: { users: [{ locked: false }, { username: 'lee', locked: true }] } })
  t.match(await admin.put('/api/users/lee', { locked: false }), { status: 200, body: { locked: false } })
  t.match(await attempt(PASSWORD), { status: 403 }, 'the address is locked as well')
  t.match(await admin.get('/api/status'), { status: 200 }, 'a session goes on')
})
