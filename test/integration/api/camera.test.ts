import t from 'tap'
import { type Api, login, until } from '../../support/api.ts'
import { startQuickServer, type TestServer } from '../../support/server.ts'

/** Width and height out of a JPEG's start-of-frame segment (ITU T.81 B.2.2). */
function jpegSize(jpeg: Buffer): { width: number; height: number } {
  for (let at = 2; at < jpeg.length; at += 2 + jpeg.readUInt16BE(at + 2)) {
    const marker = jpeg[at + 1] ?? 0
    if (marker >= 0xc0 && marker <= 0xc2) return { width: jpeg.readUInt16BE(at + 7), height: jpeg.readUInt16BE(at + 5) }
  }
  throw new Error('no JPEG')
}

/** Of the first three tests; the third one stops it. */
let server: TestServer
let api: Api

t.before(async () => {
  server = await startQuickServer(t, { args: ['--rate-limits', 'off'] })
  api = await login(server)
})

t.test('stills: every path, quality, errors', async (t) => {
  const sizes: number[] = []
  for (const path of ['/camera.jpeg?quality=10', '/image?quality=100', '/api/snapshot', '/api/v1/snapshot']) {
    const { status, headers, bytes } = await api.bytes(path)
    t.equal(status, 200, path)
    t.equal(headers.get('content-type'), 'image/jpeg')
    t.same(jpegSize(bytes), { width: 1280, height: 720 })
    sizes.push(bytes.length)
  }
  t.ok((sizes[0] ?? 0) < (sizes[1] ?? 0), 'quality acts')
  t.match(await api.get('/image?quality=0'), {
    status: 400,
    body: { error: { code: 'INVALID_REQUEST', details: 'query.quality' } },
  })
  t.match(await api.get('/image?camera=7'), { status: 404, body: { error: { code: 'NOT_FOUND' } } })
  const byToken = await fetch(`${server.base}/image?token=${api.token}`)
  t.equal(byToken.status, 200)
  await byToken.arrayBuffer()
})

t.test('a kept still is a file under a safe name, never over another', async (t) => {
  const first = await api.post('/snapshot', { filename: '../../etc/front door.jpg', quality: 50, addTimestamp: false })
  t.match(first, {
    status: 200,
    body: {
      success: true,
      filename: 'etc_front_door.jpg',
      path: /^\/media\/data\/snapshots\/\d{4}\/\d\d\/\d\d\/etc_front_door.jpg$/,
    },
  })
  const second = await api.post('/api/v1/camera/snapshot', { filename: 'etc_front_door' })
  t.match(second.body, { status: 'success', data: { filename: 'etc_front_door_1.jpg' } })
  t.match((await api.post('/snapshot')).body.filename, /^snapshot_\d{8}_\d{6}(_\d+)?\.jpg$/)
  t.match((await api.post('/snapshot', { filename: 'a', addTimestamp: true })).body.filename, /^a_\d{8}_\d{6}\.jpg$/)
  t.match(await api.post('/snapshot', { filename: 'a.png' }), { status: 422, body: { error: { code: 'INVALID_FORMAT' } } })
  t.match(await api.post('/snapshot', { file: 'a' }), {
    status: 400,
    body: { error: { code: 'INVALID_REQUEST', details: 'body.file' } },
  })
})

t.test('settings: stored, in force, refused when impossible', async (t) => {
  t.match((await api.get('/api/v1/camera/settings')).body.data, { resolution: '1280x720', fps: 30, brightness: 50 })
  t.match(await api.put('/api/v1/camera/settings', { resolution: '640x480', fps: 15, brightness: 60 }), {
    status: 200,
    body: { data: { success: true, resolution: '640x480', fps: 15, brightness: 60 } },
  })
  const status = await until(
    () => api.get('/api/camera/status'),
    ({ body }) => String(body.cameras?.[0]?.resolution) === '640x480',
    'new mode',
  )
  t.match(status.body, {
    active_camera: 0,
    streaming: true,
    cameras: [{ connected: true, framerate: 15, device: 'test:640x480@15' }],
  })
  t.same(jpegSize((await api.bytes('/image')).bytes), { width: 640, height: 480 })
  t.match(await api.put('/api/camera/settings', { resolution: '641x480' }), {
    status: 422,
    body: { error: { code: 'INVALID_RESOLUTION' } },
  })
  t.match(await api.put('/api/camera/settings', { fps: 100 }), { status: 400, body: { error: { details: 'body.fps' } } })
  t.match(await api.put('/api/camera/settings', {}), { status: 400 })
  await t.test('the sound', async (t) => {
    t.match(status.body, { cameras: [{ audio: { source: 'test', device: null } }] })
    t.match((await api.get('/api/v1/camera/info')).body.data, { audio: { source: 'test', state: 'idle', level_db: null } })
    t.match((await api.get('/api/streams')).body, { streams: [{ audio: 'aac' }, { audio: 'aac' }] })
    for (const [audio_codec, audio] of Object.entries({ opus: 'opus', none: null, pcmu: 'pcmu' })) {
      t.match(await api.put('/api/v1/camera/settings', { audio_codec }), { status: 200, body: { data: { audio_codec } } })
      t.match((await api.get('/api/streams')).body, { streams: [{ audio }, { audio }] })
    }
    const mp3 = await api.put('/api/camera/settings', { audio_codec: 'mp3' })
    t.match(mp3, { status: 400, body: { error: { details: 'body.audio_codec' } } })
  })
  await server.stop()

  // Another sound is no other camera: what was set holds.
  const again = await startQuickServer(t, { dataDir: server.dataDir, args: ['--camera', 'test:1280x720@30,audio=none'] })
  const silent = await login(again)
  const kept = { resolution: '640x480', fps: 15, brightness: 60, audio_codec: 'pcmu' }
  t.match((await silent.get('/api/camera/settings')).body, kept)
  t.match((await silent.get('/api/camera/info')).body, { audio: null, stats: { audio: null, streams: [{ audio: null }] } })
})

t.test('stop releases the camera, start brings it back, several cameras beside each other', async (t) => {
  const server = await startQuickServer(t, { args: ['--camera', 'test:640x480@15', '--camera', 'test:320x240@10'] })
  const api = await login(server)
  t.match((await api.get('/api/camera/status')).body, { cameras: [{ id: 0 }, { id: 1, resolution: '320x240', framerate: 10 }] })
  t.match((await api.post('/api/v1/camera/stop', { camera: 1 })).body.data, { camera: 1, streaming: false })
  t.match(await api.get('/image?camera=1'), { status: 503, body: { error: { code: 'CAMERA_NOT_CONNECTED' } } })
  t.equal((await api.bytes('/image?camera=0')).status, 200, 'the other goes on')
  await api.post('/api/camera/start', { camera: 1 })
  const still = await until(
    () => api.bytes('/image?camera=1'),
    ({ status }) => status === 200,
    'picture of camera 1',
  )
  t.same(jpegSize(still.bytes), { width: 320, height: 240 })
})

t.test('an absent camera: status says so, stills say 503, the server lives', async (t) => {
  const server = await startQuickServer(t, { args: ['--camera', 'v4l2:/dev/video-does-not-exist'] })
  const api = await login(server)
  const { body } = await until(
    () => api.get('/api/camera/status'),
    ({ body }) => String(body.cameras?.[0]?.state) === 'no_signal',
    'no signal',
  )
  t.match(body, { streaming: false, cameras: [{ connected: false, device: '/dev/video-does-not-exist' }] })
  t.notOk('resolution' in (body.cameras?.[0] ?? {}))
  t.match(await api.get('/camera.jpeg'), { status: 503, body: { error: { code: 'CAMERA_NOT_CONNECTED' } } })
  t.match((await api.get('/health')).body, { status: 'unhealthy', checks: { camera: 'error' } })
  t.match((await api.post('/api/recording/start', {})).body, { error: { code: 'CAMERA_NOT_CONNECTED' } })
})
