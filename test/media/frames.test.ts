import { join } from 'node:path'
import t from 'tap'
import { login, until } from '../support/api.ts'
import { gaps, readFrameNumbers } from '../support/frames.ts'
import { ADMIN_PASSWORD, startServer } from '../support/server.ts'

const SECONDS = 30
const FPS = 30
/** 1024 samples at 48 kHz, rounded up. */
const AAC_FRAME_MS = 22

t.test('no frame is missing or doubled, in a recording nor over RTSP/TCP', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  await api.post('/api/recording/start', { filename: 'frames', duration: SECONDS })
  const live = await readFrameNumbers({
    input: `rtsp://admin:${ADMIN_PASSWORD}@127.0.0.1:${server.ports.rtsp}/stream1`,
    before: ['-rtsp_transport', 'tcp'],
    after: ['-frames:v', String(SECONDS * FPS)],
  })
  t.equal(live.length, SECONDS * FPS)
  t.same(gaps(live), [], 'RTSP over TCP')
  const { body } = await until(
    () => api.get('/api/recordings?state=ready'),
    ({ body }) => Number(body.total) === 1,
    'the recording',
    15_000,
  )
  const entry = body.recordings?.[0]
  // The sound ends with a whole AAC frame, which may reach beyond the last picture.
  const beyond = Number(entry?.durationMs) - SECONDS * 1000
  t.ok(beyond >= 0 && beyond <= AAC_FRAME_MS, `${entry?.durationMs} ms`)
  const recorded = await readFrameNumbers({ input: join(server.dataDir, String(entry?.path).replace('/media/data', 'media')) })
  t.equal(recorded.length, SECONDS * FPS)
  t.same(gaps(recorded), [], 'recording')
})

t.test('the second stream and a scaled recording carry every frame too', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  await api.post('/api/recording/start', { resolution: '640x360', bitrate: 800_000, duration: 5 })
  const live = await readFrameNumbers({
    input: `rtsp://admin:${ADMIN_PASSWORD}@127.0.0.1:${server.ports.rtsp}/stream2`,
    before: ['-rtsp_transport', 'udp'],
    after: ['-frames:v', '120'],
    width: 640,
  })
  t.same(gaps(live), [], 'stream2 over UDP')
  const { body } = await until(
    () => api.get('/api/recordings?state=ready'),
    ({ body }) => Number(body.total) === 1,
    'the recording',
  )
  const path = join(server.dataDir, String(body.recordings?.[0]?.path).replace('/media/data', 'media'))
  const recorded = await readFrameNumbers({ input: path, width: 640 })
  t.equal(recorded.length, 5 * FPS)
  t.same(gaps(recorded), [], 'recording at 640x360')
})
