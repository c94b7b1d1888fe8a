import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { processIdentity } from '../../app/server/platform/index.ts'
import { type Api, type Json, login, until } from '../support/api.ts'
import { gaps, readFrameNumbers } from '../support/frames.ts'
import { RtspClient } from '../support/rtsp-client.ts'
import { startServer, type TestServer } from '../support/server.ts'

const FPS = 30

/** Number of the newest captured frame. */
async function newestFrame(api: Api): Promise<number> {
  return Number((await api.get('/api/camera/info')).body.stats?.frames_captured)
}

/** NaN while there is none. */
function helperPid(server: TestServer): number {
  const file = join(server.dataDir, 'helper.pid')
  return existsSync(file) ? Number.parseInt(readFileSync(file, 'utf8'), 10) : Number.NaN
}

async function recordingNumbers(server: TestServer, entry: Json | undefined) {
  return readFrameNumbers({ input: join(server.dataDir, String(entry?.path).replace('/media/data', 'media')) })
}

/** Records until some seconds are in the file and returns the number of the newest frame at that moment. */
async function recordAWhile(api: Api, seconds: number): Promise<number> {
  await api.post('/api/recording/start', {})
  await until(
    () => api.get('/api/recording/status'),
    ({ body }) => Number(body.duration) >= seconds,
    'recorded seconds',
    20_000,
  )
  return newestFrame(api)
}

async function checkKept(t: Test, server: TestServer, entry: Json | undefined, atKill: number, seconds: number) {
  t.match(entry, { state: 'ready' })
  const numbers = await recordingNumbers(server, entry)
  t.same(gaps(numbers), [])
  const last = numbers.at(-1) ?? 0
  t.ok(atKill - last <= FPS, `the last frame is ${last}, ${atKill} was captured at the kill`)
  t.ok(numbers.length >= (seconds - 1) * FPS)
  // The sound may reach beyond the last picture by part of an AAC frame, which is less than a picture.
  const pictures = (Number(entry?.durationMs) / 1000) * FPS
  t.ok(Math.abs(pictures - numbers.length) < 1, `the catalogue agrees with the file: ${pictures} and ${numbers.length} pictures`)
}

t.test('kill -9 of the helper while recording', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const atKill = await recordAWhile(api, 4)
  process.kill(helperPid(server), 'SIGKILL')
  const killed = performance.now()
  for (const path of ['/stream1', '/stream2']) {
    const client = await until(
      () => RtspClient.play(server, path).catch(() => null),
      (playing) => playing !== null,
      `${path} again`,
      3000,
    )
    await client?.gotKeyFrames()
    client?.close()
  }
  t.ok(performance.now() - killed < 3000, `both streams after ${Math.round(performance.now() - killed)} ms`)
  const list = await until(
    () => api.get('/api/recordings'),
    ({ body }) => Number(body.total) === 2 && String(body.recordings?.[1]?.state) !== 'recording',
    'the verdict on the old recording and a new one that goes on',
  )
  await checkKept(t, server, list.body.recordings?.[1], atKill, 4)
  t.match(list.body.recordings?.[0], { state: 'recording' }, 'the recording goes on in a new file')
  t.match((await api.get('/api/recording/status')).body, { recording: true, recording_id: '2' })
  await until(
    () => api.get('/api/recording/status'),
    ({ body }) => Number(body.duration) >= 1,
    'a second of the new file',
  )
  t.match(await api.post('/api/recording/stop'), { status: 200, body: { recording_id: '2' } })
  t.equal((await api.bytes('/image')).status, 200)
})

t.test('kill -9 of the server while recording, and a restart', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const atKill = await recordAWhile(api, 4)
  const helper = helperPid(server)
  await server.kill()
  const again = await startServer(t, { dataDir: server.dataDir })
  t.equal(processIdentity(helper), null, 'the old helper is gone')
  const newApi = await login(again)
  const { body } = await newApi.get('/api/recordings')
  t.match(body, { total: 1 })
  await checkKept(t, again, body.recordings?.[0], atKill, 4)
  t.match((await newApi.get('/api/recording/status')).body, { recording: false })
  const client = await RtspClient.play(again)
  await client.gotKeyFrames()
  await client.teardown()
})

t.test('both killed at once: the restart finds what was written', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const atKill = await recordAWhile(api, 4)
  process.kill(helperPid(server), 'SIGKILL')
  await server.kill()
  const again = await startServer(t, { dataDir: server.dataDir })
  const { body } = await (await login(again)).get('/api/recordings')
  await checkKept(t, again, body.recordings?.[0], atKill, 4)
})

t.test('a helper that hangs is replaced', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const hung = helperPid(server)
  process.kill(hung, 'SIGSTOP')
  await until(
    () => helperPid(server),
    (pid) => pid !== hung && pid > 0,
    'a new helper',
    15_000,
  )
  await until(
    () => api.bytes('/image'),
    ({ status }) => status === 200,
    'a picture',
  )
  t.equal(processIdentity(hung), null)
})
