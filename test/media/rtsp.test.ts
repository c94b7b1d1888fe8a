import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { login, PATIENCE_MS, until } from '../support/api.ts'
import { RtspClient } from '../support/rtsp-client.ts'
import { ADMIN_PASSWORD, startServer, type TestServer } from '../support/server.ts'

const run = promisify(execFile)

function url(server: TestServer, path: string, password = ADMIN_PASSWORD): string {
  return `rtsp://admin:${password}@127.0.0.1:${server.ports.rtsp}${path}`
}

async function probe(address: string, ...options: string[]) {
  const entries = ['-show_entries', 'stream=codec_name,width,height,r_frame_rate', '-of', 'json']
  const { stdout } = await run('ffprobe', ['-v', 'error', '-timeout', '30000000', ...options, ...entries, address], {
    timeout: PATIENCE_MS,
  })
  return JSON.parse(stdout).streams[0]
}

/** Why ffprobe was refused. */
async function refusal(address: string, ...options: string[]): Promise<string> {
  return probe(address, ...options).then(
    () => 'it was let in',
    (error: { stderr: string }) => error.stderr,
  )
}

t.test('both streams over both transports, by every address', async (t) => {
  const server = await startServer(t)
  const main = { codec_name: 'h264', width: 1280, height: 720, r_frame_rate: '30/1' }
  const sub = { codec_name: 'h264', width: 640, height: 360, r_frame_rate: '30/1' }
  for (const transport of ['udp', 'tcp']) {
    t.match(await probe(url(server, '/stream1'), '-rtsp_transport', transport), main, `stream1 ${transport}`)
    t.match(await probe(url(server, '/stream2'), '-rtsp_transport', transport), sub, `stream2 ${transport}`)
  }
  t.match(await probe(url(server, '/cam/0/stream1'), '-rtsp_transport', 'tcp'), main)
  t.match(await probe(url(server, '/stream1?tcp')), main, 'ffprobe asks for UDP first, is refused, and takes TCP')
  t.match(await probe(url(server, '/stream2?udp'), '-rtsp_transport', 'udp'), sub)
  t.match(await refusal(url(server, '/stream1?udp'), '-rtsp_transport', 'tcp'), /461/)
  t.match(await refusal(url(server, '/stream3'), '-rtsp_transport', 'tcp'), /404/)
  t.match(await refusal(url(server, '/cam/9/stream1'), '-rtsp_transport', 'tcp'), /404/)
})

t.test('GStreamer reads it as well', async (t) => {
  const server = await startServer(t)
  const source = [
    'rtspsrc',
    'name=camera',
    `location=rtsp://127.0.0.1:${server.ports.rtsp}/stream1`,
    'user-id=admin',
    `user-pw=${ADMIN_PASSWORD}`,
  ]
  const pictures =
    'camera. ! application/x-rtp,media=video ! rtph264depay ! h264parse ! avdec_h264 ! fakesink num-buffers=30 silent=false'
  // Sound that goes nowhere ends rtspsrc with an error when it comes before the first picture. 150 of its buffers take three times as long as 30 pictures:
  // over TCP the first sink that has had enough ends both.
  const sound = 'camera. ! application/x-rtp,media=audio ! fakesink num-buffers=150'
  for (const protocols of ['tcp', 'udp']) {
    const words = ['-v', ...source, `protocols=${protocols}`, ...pictures.split(' '), ...sound.split(' ')]
    const { stdout } = await run('gst-launch-1.0', words, { timeout: PATIENCE_MS, maxBuffer: 2 ** 24 }).catch(
      ({ stderr }: { stderr: string }) => Promise.reject(new Error(stderr.slice(-2000))),
    )
    t.ok((stdout.match(/chain {3}\*{7}/g) ?? []).length >= 30, `30 pictures over ${protocols}`)
  }
})

t.test('wrong or no credentials: 401, and the admins hear of it', async (t) => {
  const server = await startServer(t)
  t.match(await refusal(url(server, '/stream1', 'wrong'), '-rtsp_transport', 'tcp'), /401/)
  t.match(await refusal(`rtsp://127.0.0.1:${server.ports.rtsp}/stream1`, '-rtsp_transport', 'tcp'), /401/)
  const factory = await startServer(t, { factory: true })
  const withFactoryPassword = `rtsp://admin:admin@127.0.0.1:${factory.ports.rtsp}/stream1`
  t.match(await refusal(withFactoryPassword), /401/, 'the factory password opens no stream')
})

t.test('a changed password acts on RTSP at once', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const watching = await RtspClient.play(server)
  await watching.gotKeyFrames()
  await api.put('/api/users/admin/password', { current_password: ADMIN_PASSWORD, new_password: 'Another-Horse-8' })
  await until(() => watching.closed, Boolean, 'the end of the connection that the old password opened')
  await t.rejects(RtspClient.play(server), { message: /401/ })
  const client = await RtspClient.play(server, '/stream1', 'admin', 'Another-Horse-8')
  await client.gotKeyFrames()
  await client.teardown()
})

t.test('ten connections, no more; streams and clients are listed; the eleventh comes in when one leaves', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const clients: RtspClient[] = []
  t.teardown(() => {
    for (const client of clients) client.close()
  })
  for (let i = 0; i < 10; i++) clients.push(await RtspClient.play(server, i % 2 === 0 ? '/stream1' : '/stream2'))
  await Promise.all(clients.map((client) => client.gotKeyFrames()))
  await t.rejects(RtspClient.play(server), { message: /(453|503)/ })
  const { body } = await api.get('/api/streams')
  t.match(body, { streams: [{ name: 'stream1', path: '/stream1', active: true, encoder: String }, { name: 'stream2' }] })
  t.equal(body.streams?.[0]?.clients?.length, 5)
  t.match(body.streams?.[0]?.clients?.[0], { user: 'admin', transport: 'tcp', address: /127\.0\.0\.1/ })
  t.equal(body.streams?.[0]?.consumers, 5, 'one encoder, five consumers')
  await clients.pop()?.teardown()
  const eleventh = await until(
    () => RtspClient.play(server).catch(() => null),
    (client) => client !== null,
    'a free place',
  )
  if (eleventh) clients.push(eleventh)
})

t.test('encoders stop when nobody consumes', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const client = await RtspClient.play(server)
  await client.gotKeyFrames()
  t.equal((await api.get('/api/streams')).body.streams?.[0]?.active, true)
  await client.teardown()
  const encoded = async () => Number((await api.get('/api/camera/info')).body.stats?.streams?.[0]?.frames_encoded)
  const streams = () => api.get('/api/streams')
  await until(streams, ({ body }) => body.streams?.[0]?.encoder === null, 'the encoder to be gone')
  const before = await encoded()
  const captured = async () => Number((await api.get('/api/camera/info')).body.stats?.frames_captured)
  const start = await captured()
  await until(captured, (frames) => frames > start + 15, 'half a second of capture')
  t.equal(await encoded(), before)
})
