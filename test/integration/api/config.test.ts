/** The configuration over HTTP: that it answers what is in force, and that each section acts while the server runs. */
import { request } from 'node:https'
import t from 'tap'
import { WebSocket } from 'ws'
import { type Api, call, type Json, login, until } from '../../support/api.ts'
import { helperPid } from '../../support/process.ts'
import { RtspClient } from '../../support/rtsp-client.ts'
import { ADMIN_PASSWORD, startQuickServer, type TestServer } from '../../support/server.ts'

const PASSWORD = 'Battery-Staple-7'

let server: TestServer
let admin: Api
let operator: Api
let viewer: Api

t.before(async () => {
  server = await startQuickServer(t, { args: ['--rate-limits', 'off', '--camera', 'test', '--session-timeout', '1234'] })
  admin = await login(server)
  for (const role of ['operator', 'viewer']) await admin.post('/api/users', { username: role, password: PASSWORD, role })
  operator = await login(server, 'operator', PASSWORD)
  viewer = await login(server, 'viewer', PASSWORD)
})

t.test('what is read, replaced and merged is the section in force, keyed by its name', async (t) => {
  const { body } = await admin.get('/api/config')
  t.same(Object.keys(body).sort(), ['camera', 'logging', 'network', 'security', 'storage'])
  t.match(body, { security: { session_timeout: 1234, rate_limits: 'off' }, storage: { retention_days: 30 } })

  const put = await operator.put('/api/config/storage', { storage: { retention_days: 5, quota_bytes: 1000 } })
  t.match(put, { status: 200, body: { storage: { retention_days: 5, quota_bytes: 1000, segment_max_seconds: 3600 } } })
  const patch = await operator.patch('/api/config/storage', { storage: { retention_days: 6 } })
  t.match(patch.body, { storage: { retention_days: 6, quota_bytes: 1000 } })
  t.same((await viewer.get('/api/config/storage')).body, patch.body)
  const replaced = await operator.put('/api/config/storage', { storage: { retention_days: 6 } })
  t.match(replaced.body, { storage: { retention_days: 6, quota_bytes: 0 } })
  t.match((await operator.get('/api/v1/config/storage')).body, { status: 'success', data: { storage: { retention_days: 6 } } })
})

t.test('a wrong body is refused with the field named, and nothing changes', async (t) => {
  const before = await admin.get('/api/config')
  const wrong: [path: string, body: unknown, status: number, details: string][] = [
    ['storage', { storage: { retention_days: 'many' } }, 400, 'body.storage.retention_days'],
    ['storage', { storage: { surprise: 1 } }, 400, 'body.storage.surprise'],
    ['storage', { camera: { pre_roll: true } }, 400, 'body.camera'],
    ['storage', { storage: {}, camera: {} }, 400, 'body.camera'],
    ['storage', {}, 400, 'body.storage'],
    ['storage', [], 400, 'body'],
    ['storage', { storage: [] }, 400, 'body.storage'],
    ['nowhere', { nowhere: {} }, 404, 'section nowhere'],
    ['constructor', {}, 404, 'section constructor'],
    ['security', { security: { trusted_proxies: ['10.0.0.0/99'] } }, 400, 'body.security.trusted_proxies.0'],
    ['logging', { logging: { components: { nobody: 'debug' } } }, 400, 'body.logging.components.nobody'],
    ['camera', { camera: { default_resolution: '1281x721' } }, 422, 'camera.default_resolution'],
    ['camera', { camera: { default_resolution: '7680x4320' } }, 422, 'resolution'],
    ['camera', { camera: { auto_exposure: false } }, 422, 'camera.auto_exposure'],
  ]
  for (const [section, body, status, details] of wrong) {
    for (const method of ['put', 'patch'] as const) {
      const answer = await admin[method](`/api/config/${section}`, body)
      t.match(answer, { status, body: { error: { details } } }, `${method} ${section} ${JSON.stringify(body)}`)
    }
  }
  t.match(await admin.get('/api/config/nowhere'), { status: 404 })
  t.same((await admin.get('/api/config')).body, before.body)
})

t.test('network and security are changed by admins alone; viewers do not see security', async (t) => {
  t.match(await viewer.get('/api/config/security'), { status: 403, body: { error: { code: 'PERMISSION_DENIED' } } })
  t.notOk('security' in (await viewer.get('/api/config')).body)
  t.match(await operator.get('/api/config/security'), { status: 200 })
  t.match(await operator.patch('/api/config/security', { security: { hsts_max_age: 5 } }), { status: 403 })
  t.match(await operator.put('/api/config/network', { network: {} }), { status: 403 })
  t.match(await viewer.patch('/api/config/storage', { storage: {} }), { status: 403 })
  await admin.patch('/api/config/security', { security: { hsts_max_age: 5 } })
  t.match(await operator.post('/api/config/undo'), { status: 403 }, "the admin's change is not the operator's to undo")
  t.match(await admin.post('/api/config/undo'), { status: 200, body: { security: { hsts_max_age: 0 } } })
})

t.test('history and undo', async (t) => {
  await operator.put('/api/config/storage', { storage: { retention_days: 8 } })
  const { body } = await operator.get('/api/config/history?limit=1')
  t.match(body, {
    limit: 1,
    offset: 0,
    changes: [
      {
        section: 'storage',
        username: 'operator',
        address: '127.0.0.1',
        after: { retention_days: 8 },
        undoes: null,
        undone_by: null,
      },
    ],
  })
  t.match(await operator.post('/api/config/undo', { section: 'storage' }), { body: { storage: { retention_days: 6 } } })
  const after = await operator.get('/api/config/history?limit=2')
  t.match(after.body, { changes: [{ undoes: Number }, { undone_by: Number }] })
  t.equal(Number(after.body.total), Number(body.total) + 1)
  t.match(await operator.post('/api/config/undo', { section: 'logging' }), { status: 409, body: { error: { code: 'CONFLICT' } } })
  const { entries } = (await admin.get('/api/audit?action=config.section_changed&limit=1')).body
  t.match(entries, [{ username: 'operator', data: { section: 'storage', fields: ['retention_days'] } }])
})

t.test('security acts: new logins, rate limits, CORS, proxies, redirection and HSTS', async (t) => {
  const set = (security: unknown) => admin.patch('/api/config/security', { security })
  await set({ session_timeout: 60 })
  const { body } = await call(`${server.base}/api/login`, 'POST', {}, { username: 'admin', password: ADMIN_PASSWORD })
  const lifetime = Date.parse(String(body.expires_at)) - Date.now()
  t.ok(lifetime > 50_000 && lifetime <= 60_000, `${lifetime} ms`)

  await set({ rate_limits: 'overview' })
  t.equal((await admin.get('/api/config')).headers.get('x-ratelimit-limit'), '100')
  await set({ rate_limits: 'off' })
  t.equal((await admin.get('/api/config')).headers.get('x-ratelimit-limit'), null)

  const fromPage = (origin: string) =>
    call(`${server.base}/api/status`, 'GET', { authorization: `Bearer ${admin.token}`, origin })
  t.equal((await fromPage('https://nvr.example')).headers.get('access-control-allow-origin'), null)
  await set({ cors_origins: ['https://nvr.example'] })
  t.equal((await fromPage('https://nvr.example')).headers.get('access-control-allow-origin'), 'https://nvr.example')

  const behindProxy = () =>
    call(`${server.base}/api/login`, 'POST', { 'x-forwarded-for': '192.0.2.7' }, { username: 'viewer', password: PASSWORD })
  await set({ trusted_proxies: ['127.0.0.0/8'] })
  await behindProxy()
  const sessions = (await admin.get('/api/auth/sessions')).body.sessions as unknown as { address: string }[]
  t.ok(sessions.some(({ address }) => address === '192.0.2.7'))
  await set({ trusted_proxies: [] })

  await set({ https_redirect: true, hsts_max_age: 600 })
  const redirected = await fetch(`${server.base}/api/status`, { redirect: 'manual' })
  t.equal(redirected.status, 308)
  const location = redirected.headers.get('location') ?? ''
  t.equal(location, `https://127.0.0.1:${server.ports.https}/api/status`)
  const hsts = await new Promise((resolve, reject) => {
    request(location, { rejectUnauthorized: false }, (answer) => {
      answer.resume()
      resolve(answer.headers['strict-transport-security'])
    })
      .on('error', reject)
      .end()
  })
  t.equal(hsts, 'max-age=600')
  // The way back leads through HTTPS alone now; the test's client speaks HTTP only.
  await new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${admin.token}`, 'content-type': 'application/json' }
    const url = `https://127.0.0.1:${server.ports.https}/api/config/security`
    request(url, { method: 'PATCH', headers, rejectUnauthorized: false }, (answer) => {
      answer.resume()
      resolve(t.equal(answer.statusCode, 200))
    })
      .on('error', reject)
      .end(JSON.stringify({ security: { https_redirect: false, hsts_max_age: 0 } }))
  })
  t.equal((await admin.get('/api/status')).status, 200)
})

t.test('network acts: RTSP connections and WebSockets beyond the bound are refused', async (t) => {
  const first = await RtspClient.play(server)
  await admin.patch('/api/config/network', { network: { rtsp_max_connections: 1 } })
  await t.rejects(RtspClient.play(server), 'one is there already')
  await admin.patch('/api/config/network', { network: { rtsp_max_connections: 2 } })
  const second = await RtspClient.play(server)
  first.close()
  second.close()

  const socket = () => new WebSocket(`ws://127.0.0.1:${server.ports.http}/api/v1?token=${admin.token}`)
  const outcome = (ws: WebSocket) =>
    new Promise<string>((resolve) => {
      ws.onopen = () => resolve('open')
      ws.onerror = () => resolve('refused')
    })
  await admin.patch('/api/config/network', { network: { max_websockets: 1 } })
  const one = socket()
  t.equal(await outcome(one), 'open')
  t.equal(await outcome(socket()), 'refused')
  one.close()
})

t.test('a camera without a mode of its own follows the configuration, also over a restart of its controls', async (t) => {
  const resolution = async () => (await admin.get('/api/settings/resolution')).body as unknown
  t.equal(await resolution(), '1280x720')
  await operator.patch('/api/config/camera', { camera: { default_resolution: '640x360', default_framerate: 15 } })
  t.equal(await resolution(), '640x360')
  await until(
    () => admin.get('/api/camera/status'),
    ({ body }) => (body.cameras as unknown as { resolution: string }[])[0]?.resolution === '640x360',
    'the camera delivers it',
  )
  await operator.post('/api/settings/brightness', 60)
  await operator.patch('/api/config/camera', { camera: { default_resolution: '320x240' } })
  t.equal(await resolution(), '320x240', 'a control is no mode')
  await operator.post('/api/settings/fps', 20)
  await operator.patch('/api/config/camera', { camera: { default_resolution: '640x480' } })
  t.equal(await resolution(), '320x240', 'now somebody has chosen')
})

t.test('the log level acts at once, for all components or for one', async (t) => {
  const lines = (text: string) => server.log.filter((line) => line.includes(text)).length
  const change = (logging: unknown) => operator.patch('/api/config/logging', { logging })
  const restart = async () => {
    await operator.post('/api/camera/stop')
    await operator.post('/api/camera/start')
    await until(
      () => admin.get('/api/camera/status'),
      ({ body }) => (body.cameras as unknown as { connected: boolean }[])[0]?.connected === true,
      'the camera is back',
    )
  }
  const loud = lines('camera state')
  await restart()
  await until(
    () => lines('camera state'),
    (now) => now > loud,
    'a line about the camera',
  )
  const told = lines('configuration changed')
  t.match(await change({ level: 'error', components: { config: 'info' } }), { status: 200 })
  const before = lines('camera state')
  await restart()
  await change({ level: 'fatal' })
  await until(
    () => lines('configuration changed'),
    (now) => now === told + 2,
    'one component speaks',
  )
  t.equal(lines('camera state'), before, 'the others are silent')
  await change({ level: 'debug', components: {} })
  process.kill(helperPid(server), 'SIGKILL')
  await until(
    () => lines('helper phase'),
    (now) => now > 0,
    'debug lines',
  )
  t.match(await change({ level: 'info' }), { status: 200 })
  await restart()
})

t.test('nothing changes during a recording', async (t) => {
  const before = (await admin.get('/api/config')).body
  t.match(await operator.post('/api/recording/start', {}), { status: 200 })
  const refused = { status: 409, body: { error: { code: 'RECORDING_IN_PROGRESS' } } }
  t.match(await operator.patch('/api/config/storage', { storage: { retention_days: 1 } }), refused)
  t.match(await operator.put('/api/config/camera', { camera: {} }), refused)
  t.match(await operator.post('/api/config/undo', { section: 'storage' }), refused)
  t.same((await admin.get('/api/config')).body, before)
  t.match(await operator.post('/api/recording/stop'), { status: 200 })
  t.match(await operator.patch('/api/config/storage', { storage: { retention_days: 1 } }), { status: 200 })
})

t.test('a recording that starts at the same time excludes a change, or begins after it', async (t) => {
  // Its camera has no mode of its own.
  const api = await login(await startQuickServer(t, { args: ['--rate-limits', 'off', '--camera', 'test'] }))
  for (let round = 0; round < 4; round++) {
    const size = round % 2 === 0 ? '640x480' : '1280x720'
    // On a busy machine the camera may take longer for its new mode than a start waits.
    const recording = () =>
      until(
        () => api.post('/api/recording/start', {}),
        ({ status }) => status !== 503,
        'a camera that delivers',
      )
    const change = () => api.patch('/api/config/camera', { camera: { default_resolution: size } })
    const [started, changed] =
      round < 2 ? await Promise.all([recording(), change()]) : (await Promise.all([change(), recording()])).reverse()
    t.match(started, { status: 200 })
    const { camera } = (await api.get('/api/config/camera')).body
    const inForce = String((camera as Json).default_resolution)
    t.equal(inForce === size, changed?.status === 200, 'what was refused is not in force')
    if (changed?.status !== 200) t.match(changed, { status: 409, body: { error: { code: 'RECORDING_IN_PROGRESS' } } })
    await api.post('/api/recording/stop')
    const { recordings } = (await api.get('/api/recordings?limit=1')).body
    t.match(recordings, [{ resolution: inForce }], 'recorded as is in force')
    t.match(await api.patch('/api/config/camera', { camera: { default_resolution: size } }), { status: 200 })
    await until(
      () => api.get('/api/camera/status'),
      ({ body }) => Boolean(body.streaming),
      'the picture',
    )
  }
})

t.test('many at once lose nothing, and what was answered survives a kill', async (t) => {
  const fields = ['retention_days', 'quota_bytes', 'start_margin_bytes', 'retention_min_free_bytes']
  await Promise.all(
    Array.from({ length: 24 }, (_, i) => operator.patch('/api/config/storage', { storage: { [fields[i % 4] ?? '']: 100 + i } })),
  )
  const { body } = await admin.get('/api/config/storage')
  const storage = body.storage as unknown as Record<string, number>
  for (const field of fields) t.ok((storage[field] ?? 0) >= 100, field)
  const { dataDir } = server
  await server.kill()
  server = await startQuickServer(t, { dataDir })
  const again = await login(server)
  t.same((await again.get('/api/config/storage')).body, body)
})
