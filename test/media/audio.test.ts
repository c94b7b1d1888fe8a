import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { type Api, login, PATIENCE_MS, until } from '../support/api.ts'
import { helperPid, usage } from '../support/process.ts'
import { RtspClient } from '../support/rtsp-client.ts'
import { scratchFolder } from '../support/scratch.ts'
import { ADMIN_PASSWORD, startServer, type TestServer } from '../support/server.ts'
import { beepsAfterFlashes } from '../support/sync.ts'

const run = promisify(execFile)
const WIDTH = 640
/** 50 pictures a second: a flash is late by 20 ms at most. */
const CAMERA = `test:${WIDTH}x360@50`
const TOLERANCE_S = 0.06

function url(server: TestServer, path: string): string {
  return `rtsp://admin:${ADMIN_PASSWORD}@127.0.0.1:${server.ports.rtsp}${path}`
}

async function codecs(server: TestServer, path: string, ...options: string[]): Promise<string[]> {
  const entries = ['-show_entries', 'stream=codec_name', '-of', 'csv=p=0']
  const { stdout } = await run('ffprobe', ['-v', 'error', ...options, ...entries, url(server, path)], { timeout: PATIENCE_MS })
  return stdout.trim().split('\n')
}

async function record(t: Test, server: TestServer, path: string, transport: string, seconds: number): Promise<string> {
  const folder = scratchFolder(t, 'sound')
  const file = join(folder, 'out.mkv')
  const input = ['-rtsp_transport', transport, '-i', url(server, path), '-t', String(seconds)]
  await run('ffmpeg', ['-v', 'error', '-nostdin', ...input, '-map', '0', '-c', 'copy', file], { timeout: (seconds + 30) * 1000 })
  return file
}

const info = async (api: Api, camera = 0) => (await api.get(`/api/camera/info?camera=${camera}`)).body
const worst = (offsets: readonly number[]) => Math.max(...offsets.map(Math.abs))
const inMs = (offsets: readonly number[]) => offsets.map((offset) => Math.round(offset * 1000)).join(' ')

t.test('each codec beside the pictures, in step with them, and nothing runs afterwards', async (t) => {
  const server = await startServer(t, { args: ['--camera', CAMERA] })
  const api = await login(server)
  for (const [codec, transport] of [
    ['opus', 'udp'],
    ['pcmu', 'tcp'],
    ['aac', 'tcp'],
  ] as const) {
    await api.put('/api/camera/settings', { audio_codec: codec })
    const name = codec === 'pcmu' ? 'pcm_mulaw' : codec
    t.same(await codecs(server, '/stream1', '-rtsp_transport', transport), ['h264', name])
    t.same(
      await codecs(server, '/cam/0/stream2', '-rtsp_transport', 'tcp', '-allowed_media_types', 'audio'),
      [name],
      'the sound alone',
    )
    const offsets = await beepsAfterFlashes(await record(t, server, '/stream1', transport, 6), WIDTH)
    t.comment(`${codec}: ${inMs(offsets)} ms`)
    t.ok(offsets.length >= 4, `${offsets.length} beeps with a flash`)
    t.ok(worst(offsets) < TOLERANCE_S, `${codec}: beep and flash at most ${inMs([worst(offsets)])} ms apart`)
  }
  await until(
    () => info(api),
    ({ audio }) => String(audio?.state) === 'idle',
    'the end of the capture',
  )
  await api.put('/api/camera/settings', { audio_codec: 'none' })
  t.same(await codecs(server, '/stream1', '-rtsp_transport', 'tcp'), ['h264'])
})

t.test('two clients for 20 s: one encoder, no drift', async (t) => {
  const server = await startServer(t, { args: ['--camera', CAMERA] })
  const api = await login(server)
  const before = usage(helperPid(server)).cpuSeconds
  const files = [record(t, server, '/stream1', 'tcp', 20), record(t, server, '/stream2', 'udp', 20)] as const
  const { audio, stats } = await until(
    () => info(api),
    ({ stats }) => Number(stats?.audio?.consumers) === 2 && String(stats?.audio?.state) === 'streaming',
    'two listeners',
  )
  t.match(audio, { source: 'test', device: null, state: 'streaming', reason: null })
  t.ok(Number(audio?.level_db) < -6 && Number(audio?.level_db) > -60, `${audio?.level_db} dB`)
  t.match(stats?.audio, { format: 'S16LE', rate: 48000, channels: 2 })
  const [main, sub] = [await files[0], await files[1]]
  t.comment(`CPU: ${(usage(helperPid(server)).cpuSeconds - before).toFixed(1)} s in about 20 s`)
  for (const [file, width] of [
    [main, WIDTH],
    [sub, WIDTH],
  ] as const) {
    const offsets = await beepsAfterFlashes(file, width)
    t.comment(`${inMs(offsets)} ms`)
    t.ok(offsets.length >= 17, `${offsets.length} beeps with a flash`)
    t.ok(worst(offsets) < TOLERANCE_S, `at most ${inMs([worst(offsets)])} ms apart`)
    t.ok(Math.abs((offsets.at(-2) ?? 1) - (offsets[2] ?? 0)) < 0.03, 'as far apart at the end as at the beginning')
  }
})

t.test('a client that takes the pictures alone, and one that takes both', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const silent = await RtspClient.play(server)
  t.teardown(() => silent.close())
  await silent.gotKeyFrames(2)
  await until(
    () => info(api),
    ({ stats }) => Number(stats?.audio?.consumers) === 0 && String(stats?.audio?.state) === 'idle',
    'no capture for it',
  )
  const hearing = await RtspClient.playWithSound(server)
  t.teardown(() => hearing.close())
  await until(
    async () => hearing.soundPackets,
    (packets) => packets > 50,
    'a second of sound',
  )
  await hearing.gotKeyFrames(2)
  t.equal(silent.soundPackets, 0)
})

t.test('a sound card that is not there: the pictures come at once and go on', async (t) => {
  const args = ['--camera', 'test:640x480@30,audio=alsa:hw:31,0', '--camera', 'test:640x480@30,audio=none']
  const server = await startServer(t, { args })
  const api = await login(server)
  const times: number[] = []
  for (const path of ['/cam/0/stream1', '/cam/1/stream1']) {
    const began = performance.now()
    const client = path.includes('0') ? await RtspClient.playWithSound(server, path) : await RtspClient.play(server, path)
    t.teardown(() => client.close())
    await client.gotKeyFrames()
    times.push(performance.now() - began)
    await client.gotKeyFrames(2)
    t.equal(client.lost, 0)
  }
  const [withCard = 0, without = 0] = times
  t.comment(`first picture after ${withCard.toFixed(0)} ms, ${without.toFixed(0)} ms without sound`)
  t.ok(withCard < without + 1000, 'nobody waits for the sound')
  const { audio } = await until(
    () => info(api),
    ({ audio }) => String(audio?.state) === 'no_signal',
    'what is wrong',
  )
  t.match(audio, { source: 'alsa', device: 'hw:31,0', reason: /.+/, level_db: null })
  t.same((await info(api, 1)).audio, null)
  t.same(await codecs(server, '/cam/1/stream1', '-rtsp_transport', 'tcp'), ['h264'])
})
