import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { promisify } from 'node:util'
import t from 'tap'
import { login, PATIENCE_MS, until } from '../support/api.ts'
import { RtspClient } from '../support/rtsp-client.ts'
import { ADMIN_PASSWORD, startServer, type TestServer } from '../support/server.ts'

const run = promisify(execFile)
const PASSWORD = 'Battery-Staple-7'

async function probe(address: string): Promise<string> {
  const args = [
    '-v',
    'error',
    '-timeout',
    '5000000',
    '-rtsp_transport',
    'tcp',
    '-show_entries',
    'stream=width,height',
    '-of',
    'csv=p=0:s=x',
  ]
  return run('ffprobe', [...args, address], { timeout: PATIENCE_MS }).then(
    ({ stdout }) => stdout.trim(),
    (error: { stderr: string }) => error.stderr,
  )
}

function url(server: TestServer, path: string, user = 'admin', password = ADMIN_PASSWORD): string {
  return `rtsp://${user}:${password}@127.0.0.1:${server.ports.rtsp}${path}`
}

/** The answer to a DESCRIBE without credentials. */
async function describe(server: TestServer, path: string): Promise<string> {
  const socket = connect(server.ports.rtsp, '127.0.0.1')
  socket.write(`DESCRIBE rtsp://127.0.0.1:${server.ports.rtsp}${path} RTSP/1.0\r\nCSeq: 1\r\n\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return answer.toString()
}

t.test('RTSPS plays, and is the only place for Basic', async (t) => {
  const server = await startServer(t)
  t.equal(await probe(`rtsps://admin:${ADMIN_PASSWORD}@127.0.0.1:${server.ports.rtsps}/stream1`), '1280x720')
  t.match(await probe(`rtsps://admin:wrong@127.0.0.1:${server.ports.rtsps}/stream1`), /401/)
  const plain = await describe(server, '/stream1')
  t.match(plain, /401/)
  t.match(plain, /Digest[^\r\n]*algorithm=SHA-256/i)
  t.match(plain, /Digest[^\r\n]*algorithm=MD5/i)
  t.notMatch(plain, /WWW-Authenticate: Basic/i)
})

t.test('a user limited to a camera sees that camera alone', async (t) => {
  const server = await startServer(t, { args: ['--camera', 'test:320x240@10', '--camera', 'test:160x120@10'] })
  const api = await login(server)
  await api.post('/api/users', { username: 'guard', password: PASSWORD, role: 'viewer', cameras: [1] })
  t.equal(await probe(url(server, '/cam/1/stream1', 'guard', PASSWORD)), '160x120')
  t.match(await probe(url(server, '/cam/0/stream1', 'guard', PASSWORD)), /40[134]/)
  t.match(await probe(url(server, '/stream1', 'guard', PASSWORD)), /40[134]/, 'the active camera is another one')
})

t.test('a share link opens its stream until it is revoked', async (t) => {
  const server = await startServer(t, { args: ['--camera', 'test:320x240@10', '--camera', 'test:160x120@10'] })
  const api = await login(server)
  const { body } = await api.post('/api/shares', { kind: 'stream', camera: 0, expires_in_seconds: 600 })
  const user = `share-${body.id}`
  const client = await RtspClient.play(server, '/cam/0/stream1', user, String(body.token))
  await client.gotKeyFrames()
  t.match(await probe(url(server, '/cam/1/stream1', user, String(body.token))), /40[134]/)
  t.equal((await api.delete(`/api/shares/${body.id}`)).status, 200)
  await until(() => client.closed, Boolean, 'the end of what the link has opened')
  await t.rejects(RtspClient.play(server, '/cam/0/stream1', user, String(body.token)), { message: /401/ })
})

t.test('five wrong passwords over RTSP lock the account there and over HTTP; an open stream goes on', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  await api.post('/api/users', { username: 'guard', password: PASSWORD, role: 'viewer' })
  const client = await RtspClient.play(server, '/stream1')
  await client.gotKeyFrames()
  for (let i = 0; i < 5; i++) await t.rejects(RtspClient.play(server, '/stream1', 'guard', 'wrong'), { message: /401/ })
  await until(
    () => api.get('/api/users'),
    ({ body }) => JSON.stringify(body).includes('"locked":true'),
    'the lock',
  )
  await t.rejects(RtspClient.play(server, '/stream1', 'guard', PASSWORD), { message: /401/ }, 'the right password while locked')
  const packets = client.packets
  await client.gotPackets(packets + 30)
  await client.teardown()
})
