import { once } from 'node:events'
import t from 'tap'
import { WebSocket } from 'ws'
import { type Api, call, login, until } from '../../support/api.ts'
import { startQuickServer, type TestServer } from '../../support/server.ts'

const PASSWORD = 'Battery-Staple-7'

async function statusOf(server: TestServer, path: string, token: string, how: 'query' | 'bearer' = 'query'): Promise<number> {
  const url = `${server.base}${path}`
  const answer =
    how === 'bearer'
      ? await fetch(url, { headers: { authorization: `Bearer ${token}` } })
      : await fetch(`${url}${path.includes('?') ? '&' : '?'}token=${token}`)
  await answer.arrayBuffer()
  return answer.status
}

async function share(api: Api, body: Record<string, unknown>): Promise<{ id: string; token: string }> {
  const answer = await api.post('/api/shares', { expires_in_seconds: 60, ...body })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return { id: String(answer.body.id), token: String(answer.body.token) }
}

async function record(api: Api): Promise<number> {
  const { body } = await api.post('/api/recording/start', { camera: 0 })
  await until(
    () => api.get('/api/recording/status?camera=0'),
    (answer) => Number(answer.body.duration) >= 1,
    'a second of recording',
  )
  await api.post('/api/recording/stop', { camera: 0 })
  return Number(body.recording_id)
}

t.test('each kind opens exactly what it shares', async (t) => {
  const server = await startQuickServer(t, {
    args: ['--rate-limits', 'off', '--camera', 'test:640x480@15', '--camera', 'test:640x480@15'],
  })
  const admin = await login(server)
  const first = await record(admin)
  const second = await record(admin)
  const still = await share(admin, { kind: 'still', camera: 1, note: 'for the porter' })
  const stream = await share(admin, { kind: 'stream', camera: 0 })
  const recording = await share(admin, { kind: 'recording', recording_id: first })

  /** What each of the three answers: still of 1, stream of 0, the first recording. */
  const table: [string, number, number, number][] = [
    ['/image', 200, 200, 403],
    ['/camera.jpeg?camera=1', 200, 403, 403],
    ['/api/snapshot?camera=0', 403, 200, 403],
    ['/api/v1/snapshot', 200, 200, 403],
    [`/api/recordings/${first}`, 403, 403, 200],
    [`/api/recordings/${second}`, 403, 403, 403],
    ['/api/recordings', 403, 403, 403],
    ['/api/status', 403, 403, 403],
    ['/health', 403, 403, 403],
    ['/api/streams', 403, 403, 403],
    ['/api/auth/session', 403, 403, 403],
    ['/api/users', 403, 403, 403],
    ['/api/shares', 403, 403, 403],
    ['/api/openapi.json', 403, 403, 403],
  ]
  for (const [path, ...expected] of table) {
    const links = [still, stream, recording]
    for (const [i, { token }] of links.entries()) {
      t.equal(await statusOf(server, path, token), expected[i], `${path} with link ${i}`)
      t.equal(await statusOf(server, path, token, 'bearer'), expected[i], `${path} with link ${i} as Bearer`)
    }
  }
  const write = await call(`${server.base}/api/recordings/${first}?token=${recording.token}`, 'DELETE', {})
  t.equal(write.status, 403)
  const cookie = await call(`${server.base}/image`, 'GET', { cookie: `camera_session=${still.token}` })
  t.equal(cookie.status, 401, 'a link is no cookie')
  for (const { token } of [still, recording]) {
    const ws = new WebSocket(`ws://127.0.0.1:${server.ports.http}/api/v1?token=${token}`)
    const [error] = (await once(ws, 'error')) as [Error]
    t.match(error.message, /403/)
  }
  const { body } = await admin.get('/api/shares')
  t.match(body, {
    total: 3,
    shares: [{ kind: 'recording', recording_id: first }, { rtsp_user: /^share-/ }, { note: 'for the porter' }],
  })
  t.notMatch(JSON.stringify(body), /token|hash|sealed/)
})

t.test('links end by revocation, with their owner, and are limited to what the owner may share', async (t) => {
  const server = await startQuickServer(t, { args: ['--camera', 'test:640x480@15', '--camera', 'test:640x480@15'] })
  const admin = await login(server)
  for (const [username, role] of [
    ['op', 'operator'],
    ['vi', 'viewer'],
  ]) {
    await admin.post('/api/users', { username, role, password: PASSWORD, cameras: username === 'op' ? [1] : null })
  }
  const op = await login(server, 'op', PASSWORD)
  const viewer = await login(server, 'vi', PASSWORD)
  const body = { kind: 'still', camera: 1, expires_in_seconds: 60 }
  t.match(await viewer.post('/api/shares', body), { status: 403 })
  t.match(await op.post('/api/shares', { ...body, camera: 0 }), { status: 403 })
  for (const bad of [
    { kind: 'recording' },
    { kind: 'still', recording_id: 1 },
    { expires_in_seconds: 59 },
    { expires_in_seconds: 2_592_001 },
    { kind: 'all' },
  ]) {
    t.match(await op.post('/api/shares', { ...body, ...bad }), { status: 400 }, JSON.stringify(bad))
  }
  t.match(await op.post('/api/shares', { ...body, kind: 'recording', camera: undefined, recording_id: 999 }), { status: 404 })
  const admins = await share(admin, { kind: 'still', camera: 1 })
  const revoked = await share(op, { kind: 'still', camera: 1 })
  const orphan = await share(op, { kind: 'stream', camera: 1 })
  t.match(await op.get('/api/shares'), { body: { total: 2 } })
  t.match(await op.delete(`/api/shares/${admins.id}`), { status: 404 })
  t.match(await op.delete(`/api/shares/${revoked.id}`), { status: 200 })
  t.equal(await statusOf(server, '/image', revoked.token), 401)
  t.equal(await statusOf(server, '/image', orphan.token), 200)
  await admin.put('/api/users/op', { role: 'viewer' })
  t.equal(await statusOf(server, '/image', orphan.token), 401, 'the owner may not share any more')
  await admin.put('/api/users/op', { role: 'operator' })
  t.equal(await statusOf(server, '/image', orphan.token), 401, 'and it does not come back')
  t.equal(await statusOf(server, '/image', admins.token), 200)
})
