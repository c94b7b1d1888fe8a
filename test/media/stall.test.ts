import t from 'tap'
import { login, until } from '../support/api.ts'
import { gaps, readFrameNumbers } from '../support/frames.ts'
import { RtspClient } from '../support/rtsp-client.ts'
import { ADMIN_PASSWORD, startServer } from '../support/server.ts'

const SECONDS = 60
const FPS = 30

t.test('a client that stops reading harms no other', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const stalled = await RtspClient.playWithSound(server)
  t.teardown(() => stalled.close())
  await stalled.gotKeyFrames()
  stalled.stall()
  const viewer = (transport: string) =>
    readFrameNumbers({
      input: `rtsp://admin:${ADMIN_PASSWORD}@127.0.0.1:${server.ports.rtsp}/stream1`,
      before: ['-rtsp_transport', transport, ...(transport === 'udp' ? ['-buffer_size', '8000000'] : [])],
      after: ['-frames:v', String(SECONDS * FPS)],
    })
  const [tcp, udp] = await Promise.all([viewer('tcp'), viewer('udp')])
  t.equal(tcp.length, SECONDS * FPS)
  t.same(gaps(tcp), [], 'the TCP viewer')
  t.equal(udp.length, SECONDS * FPS)
  t.same(gaps(udp), [], 'the UDP viewer')
  const { body } = await until(
    () => api.get('/api/streams'),
    () => true,
    'the streams',
  )
  t.equal(body.streams?.[0]?.frames_dropped, 0)
})
