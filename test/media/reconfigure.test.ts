import { execFile } from 'node:child_process'
import { copyFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { type Api, login, until } from '../support/api.ts'
import { readFrameNumbers } from '../support/frames.ts'
import { RtspClient } from '../support/rtsp-client.ts'
import { scratchFolder } from '../support/scratch.ts'
import { ADMIN_PASSWORD, startServer, type TestServer } from '../support/server.ts'

const run = promisify(execFile)

/** Mean luma of the newest still, and of its chroma distance from grey. */
async function colour(api: Api): Promise<{ luma: number; chroma: number }> {
  const { bytes } = await api.bytes('/image?quality=95')
  const child = run(
    'ffmpeg',
    ['-v', 'error', '-i', '-', '-vf', 'scale=64:36:flags=area', '-f', 'rawvideo', '-pix_fmt', 'yuv444p', '-'],
    {
      encoding: 'buffer',
    },
  )
  child.child.stdin?.end(bytes)
  const { stdout } = await child
  const mean = (from: number, value: (byte: number) => number) =>
    stdout.subarray(from, from + 2304).reduce((sum, byte) => sum + value(byte), 0) / 2304
  return { luma: mean(0, (byte) => byte), chroma: mean(2304, (byte) => Math.abs(byte - 128)) }
}

async function size(server: TestServer, path: string): Promise<string> {
  const address = `rtsp://admin:${ADMIN_PASSWORD}@127.0.0.1:${server.ports.rtsp}${path}`
  const args = ['-v', 'error', '-rtsp_transport', 'tcp', '-show_entries', 'stream=width,height', '-of', 'csv=p=0:s=x', address]
  return (await run('ffprobe', args)).stdout.trim()
}

t.test('resolution and fps change under connected clients', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const clients = [await RtspClient.play(server, '/stream1'), await RtspClient.play(server, '/stream2')]
  t.teardown(() => {
    for (const client of clients) client.close()
  })
  await Promise.all(clients.map((client) => client.gotKeyFrames()))
  for (const [resolution, fps, expected] of [
    ['1920x1080', 15, '1920x1080'],
    ['640x480', 60, '640x480'],
    ['1280x720', 30, '1280x720'],
  ] as const) {
    for (const client of clients) client.longestPause = 0
    const before = clients.map((client) => client.keyFrames)
    t.match(await api.put('/api/camera/settings', { resolution, fps }), { status: 200 })
    await Promise.all(clients.map((client, i) => client.gotKeyFrames((before[i] ?? 0) + 1)))
    for (const client of clients) {
      await client.gotPackets(client.packets + 30)
      t.ok(client.longestPause < 2000, `${resolution}@${fps}: a pause of ${Math.round(client.longestPause)} ms`)
      t.notOk(client.closed)
    }
    t.equal(await size(server, '/stream1'), expected)
  }
})

t.test('brightness, contrast and saturation act on the picture', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const neutral = await colour(api)
  await api.put('/api/camera/settings', { brightness: 75 })
  await until(
    () => colour(api),
    ({ luma }) => luma > neutral.luma + 20,
    'a brighter picture',
  )
  await api.put('/api/camera/settings', { brightness: 50, saturation: 0 })
  await until(
    () => colour(api),
    ({ chroma }) => chroma < neutral.chroma / 4,
    'a grey picture',
  )
  await api.put('/api/camera/settings', { saturation: 50 })
  await until(
    () => colour(api),
    ({ luma, chroma }) => Math.abs(luma - neutral.luma) < 4 && Math.abs(chroma - neutral.chroma) < 4,
    'neutral again',
  )
})

t.test('a camera that is not there yet, comes, and goes: clients stay connected', async (t) => {
  const folder = scratchFolder(t, 'clip')
  const [clip, ready] = [join(folder, 'clip.mp4'), join(folder, 'ready.mp4')]
  const maker = await startServer(t)
  const makerApi = await login(maker)
  await makerApi.post('/api/recording/start', { duration: 3 })
  const made = await until(
    () => makerApi.get('/api/recordings?state=ready'),
    ({ body }) => Number(body.total) === 1,
    'the clip',
  )
  copyFileSync(join(maker.dataDir, String(made.body.recordings?.[0]?.path).replace('/media/data', 'media')), ready)
  await maker.stop()

  const server = await startServer(t, { args: ['--camera', `file:${clip}@1280x720@30`] })
  const api = await login(server)
  const state = async () => String((await api.get('/api/camera/status')).body.cameras?.[0]?.state)
  await until(state, (text) => text === 'no_signal', 'no signal')
  const client = await RtspClient.play(server)
  t.teardown(() => client.close())
  await client.gotKeyFrames()
  t.match(await api.get('/image'), { status: 503, body: { error: { code: 'CAMERA_NOT_CONNECTED' } } })
  renameSync(ready, clip)
  await until(state, (text) => text === 'streaming', 'the picture')
  const numbers = await readFrameNumbers({
    input: `rtsp://admin:${ADMIN_PASSWORD}@127.0.0.1:${server.ports.rtsp}/stream1`,
    before: ['-rtsp_transport', 'tcp'],
    after: ['-frames:v', '150'],
  })
  const seen = numbers.filter((number) => number !== null)
  t.ok(seen.length >= 140, `${seen.length} of 150 pictures carry their number`)
  t.ok(new Set(seen).size >= 80 && seen.length > new Set(seen).size, 'the clip is played in a loop')
  t.notOk(client.closed, 'the client that saw "no signal" is still there')
  t.equal((await api.bytes('/image')).status, 200)
  const packets = client.packets
  await client.gotPackets(packets + 60)
})
