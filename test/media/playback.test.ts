import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { type Api, type Json, jobDone, login, PATIENCE_MS, until } from '../support/api.ts'
import { gaps, readFrameNumbers } from '../support/frames.ts'
import { RtspClient } from '../support/rtsp-client.ts'
import { ADMIN_PASSWORD, startServer, type TestServer } from '../support/server.ts'

const run = promisify(execFile)
const SEEK = join(import.meta.dirname, '../../build/media/tests/rtsp_seek')
const PASSWORD = 'Battery-Staple-7'
const WIDTH = 640

function url(server: TestServer, path: string, user = 'admin', password = ADMIN_PASSWORD): string {
  return `rtsp://${user}:${password}@127.0.0.1:${server.ports.rtsp}${path}`
}

async function numbers(input: string, before: string[] = [], after: string[] = []): Promise<(number | null)[]> {
  const signal = AbortSignal.timeout(PATIENCE_MS)
  return readFrameNumbers({ input, before, after, captured: WIDTH, signal })
}

/** Two cameras, each with 7 seconds in two parts: 1 is MP4, 2 is AVI. */
async function recorded(t: Test): Promise<{ server: TestServer; api: Api; ids: [number, number] }> {
  const camera = ['--camera', `test:${WIDTH}x360@30`]
  const args = [...camera, ...camera, '--rate-limits', 'off']
  const server = await startServer(t, { args })
  const api = await login(server)
  const set = await api.patch('/api/config/storage', { storage: { segment_max_seconds: 4 } })
  t.equal(set.status, 200)
  const start = async (camera: number, format: string) => {
    const answer = await api.post('/api/recording/start', { camera, format, duration: 7, filename: `visit${camera}` })
    t.equal(answer.status, 200, JSON.stringify(answer.body))
    return Number(answer.body.recording_id ?? answer.body.recordingId)
  }
  const ids: [number, number] = [await start(0, 'mp4'), await start(1, 'avi')]
  for (const id of ids) {
    const ready = ({ body }: { body: { state?: unknown } }) => body.state === 'ready'
    const info = await until(() => api.get(`/api/recordings/${id}/info`), ready, `recording ${id}`)
    t.equal(info.body.partCount, 2)
  }
  return { server, api, ids }
}

t.test('recordings over RTSP: every picture, every place, one time line', async (t) => {
  const { server, api, ids } = await recorded(t)
  const tcp = ['-rtsp_transport', 'tcp']

  for (const id of ids) {
    const address = url(server, `/recording?id=${id}`)
    const all = await numbers(address, tcp)
    const first = Number(all[0])
    t.same(gaps(all), [], `recording ${id}: all pictures in order, over both parts`)
    t.ok(Math.abs(all.length - 210) <= 2, `${all.length} pictures in 7 s`)

    for (const [transport, place] of [
      ['tcp', 5],
      ['udp', 2.5],
    ] as const) {
      const after = await numbers(address, ['-rtsp_transport', transport, '-ss', String(place)], ['-frames:v', '30'])
      const off = Number(after[0]) - first - place * 30
      t.ok(Math.abs(off) <= 1, `recording ${id}: ffmpeg shows the picture of ${place} s (${off} beside it)`)
      t.same(gaps(after), [], 'and those behind it')
    }
    const plain = `rtsp://127.0.0.1:${server.ports.rtsp}/recording?id=${id}`
    const { stdout } = await run(SEEK, [plain, 'admin', ADMIN_PASSWORD, '5'], { timeout: PATIENCE_MS })
    const [time, number] = stdout.split(' ').map(Number)
    t.ok(Math.abs(Number(number) - first - 150) <= 1, `recording ${id}: so does GStreamer (${number}, the first is ${first})`)
    t.ok(Math.abs(Number(time) - 5000) <= 34, `and knows where it is (${time} ms)`)
  }

  const newest = await numbers(url(server, '/recording'), tcp, ['-frames:v', '5'])
  t.same(gaps(newest), [], 'the newest without a number')

  // Ranges, pauses and speeds, seen from the protocol.
  const client = await RtspClient.play(server, `/recording?id=${ids[0]}`)
  await client.gotPackets(20)
  const begun = performance.now()
  const fast = await client.ask('PLAY', { Range: 'npt=1-', Scale: '2' })
  t.match(fast, { status: 200 })
  t.match(fast.headers.get('scale'), /^2\.000/)
  t.match(fast.headers.get('range'), /^npt=1(\.\d+)?-7/)
  await until(() => client.over, Boolean, 'the end at double speed', 8000)
  const took = performance.now() - begun
  t.ok(took > 2500 && took < 4500, `6 s at double speed took ${Math.round(took)} ms`)
  t.equal((await client.ask('PLAY', { Range: 'npt=3-', Scale: '-1' })).status, 456)
  t.equal((await client.ask('PLAY', { Range: 'npt=77-' })).status, 457)
  t.equal((await client.ask('PLAY', { Range: 'npt=3-2' })).status, 457)
  await client.teardown()
  const part = await RtspClient.play(server, `/recording?id=${ids[0]}`)
  const cut = await part.ask('PLAY', { Range: 'npt=2-3' })
  t.match(cut.headers.get('range'), /^npt=2(\.\d+)?-3/)
  const cutAt = performance.now()
  await until(() => part.over, Boolean, 'the end of a range')
  t.ok(performance.now() - cutAt < 2500, 'a range ends where it says')
  await part.teardown()

  const paused = await RtspClient.play(server, `/recording?id=${ids[0]}`)
  await paused.gotPackets(20)
  t.equal((await paused.ask('PAUSE')).status, 200)
  const still = paused.packets
  const on = await paused.ask('PLAY')
  t.equal(on.status, 200)
  t.ok(paused.packets - still <= 5, 'nothing comes while it is paused')
  await paused.gotPackets(still + 30)
  t.ok(paused.lost <= 5, `and no more than the picture is lost by it that was under way (${paused.lost} packets)`)
  await paused.teardown()

  // Who may see what.
  await api.post('/api/users', { username: 'guard', password: PASSWORD, role: 'viewer', cameras: [1], protocols: ['rtsp'] })
  const refused = async (path: string, user?: string, password?: string) =>
    run('ffprobe', ['-v', 'error', ...tcp, url(server, path, user, password)], { timeout: PATIENCE_MS }).then(
      () => 'it was let in',
      (error: { stderr: string }) => error.stderr,
    )
  t.match(await refused('/recording?id=4711'), /404/)
  t.match(await refused('/recording?id=x'), /404/)
  t.match(await refused('/recording', 'admin', 'wrong'), /401/)
  t.match(await refused(`/recording?id=${ids[0]}`, 'guard', PASSWORD), /404/)
  t.match(await refused(`/recording?id=${ids[1]}`, 'guard', PASSWORD), /let in/)
  t.match(await refused('/recording', 'guard', PASSWORD), /let in/)
  t.match(await refused(`/recording?id=${ids[0]}&udp`), /461/)

  // The catalogue's stills and copies of the same.
  const still5 = await fetch(`${server.base}/api/recordings/${ids[0]}/thumbnail?position_ms=5000&width=320`, {
    headers: { Authorization: `Basic ${Buffer.from(`admin:${ADMIN_PASSWORD}`).toString('base64')}` },
  })
  t.equal(still5.status, 200)
  t.equal(still5.headers.get('content-type'), 'image/jpeg')
  const started = await api.post(`/api/recordings/${ids[0]}/export`, { start_ms: 3000, end_ms: 6000, filename: 'cut' })
  t.match(started, { status: 200, body: { status: 'running' } })
  const job = await jobDone(api, started.body)
  t.match(job, { status: 'succeeded', result: { filename: 'cut.mp4', path: '/media/data/exports/cut.mp4' } })
  const whole = await numbers(url(server, `/recording?id=${ids[0]}`), tcp, ['-frames:v', '1'])
  const copy = await numbers(join(server.dataDir, 'media/exports/cut.mp4'))
  t.same(gaps(copy), [], 'the copy has all pictures, over both parts')
  t.ok(
    Number(copy[0]) <= Number(whole[0]) + 90 && Number(copy[0]) > Number(whole[0]) + 20,
    'from the key frame before its start on',
  )
  t.ok(Math.abs(Number(copy.at(-1)) - Number(whole[0]) - 179) <= 1, 'up to its end')

  // The copy belongs to the same camera, by whatever way it is asked for.
  const entries = async (who: Api) => (await who.get('/api/recordings?media_type=backup')).body
  const info = await api.get(`/api/recordings/${ids[0]}/info`)
  const { size } = statSync(join(server.dataDir, 'media/exports/cut.mp4'))
  const { recordings: exported } = await entries(api)
  const kind = { camera: 0, state: 'ready', mediaEncoding: 'mp4', videoCodec: 'h264' }
  t.match(exported, [{ filename: 'cut.mp4', ...kind, resolution: '640x360', size }])
  const [entry] = exported as unknown as Json[]
  t.equal(Number(entry?.timestampEndMs), Number(info.body.timestampStartMs) + 6000)
  t.ok(Math.abs(Number(entry?.durationMs) - (copy.length * 1000) / 30) < 100, `${entry?.durationMs} ms`)
  await api.post('/api/users', { username: 'watch', password: PASSWORD, role: 'viewer', cameras: [1] })
  const watch = await login(server, 'watch', PASSWORD)
  t.match(await entries(watch), { total: 0 })
  for (const path of ['/files/exports/cut.mp4', '/download/exports/cut.mp4', `/api/recordings/${entry?.id}`]) {
    t.equal((await watch.bytes(path)).status, 403, path)
    t.equal((await api.bytes(path)).bytes.length, size, path)
  }
  t.match((await watch.get('/files?path=exports')).body, { files: [] })
  t.equal((await api.delete('/files/exports/cut.mp4')).status, 200)
  t.match(await entries(api), { total: 0 })

  // A recording that is deleted while it plays.
  const last = await RtspClient.play(server, `/recording?id=${ids[0]}`)
  await last.gotPackets(20)
  t.equal((await api.delete(`/api/recordings/${ids[0]}`)).status, 200)
  await until(() => last.over || last.closed, Boolean, 'the end of what was deleted')
  last.close()
})
