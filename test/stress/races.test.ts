import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { type Api, login, until } from '../support/api.ts'
import { helperPid } from '../support/process.ts'
import { RtspClient } from '../support/rtsp-client.ts'
import { startServer, type TestServer } from '../support/server.ts'

const TWO_CAMERAS = ['--camera', 'test:320x240@10', '--camera', 'test:320x240@10']

function hostPath(server: TestServer, devicePath: unknown): string {
  return join(server.dataDir, String(devicePath).replace('/media/data', 'media'))
}

async function recordedSeconds(api: Api, seconds: number): Promise<void> {
  await until(
    () => api.get('/api/recording/status'),
    ({ body }) => Number(body.duration) >= seconds,
    `${seconds} s of recording`,
  )
}

/** A state socket that has been greeted, and what it was sent. */
async function openSocket(t: Test, server: TestServer, { token }: Api) {
  const socket = new WebSocket(`ws://127.0.0.1:${server.ports.http}/api/v1?token=${token}`)
  t.teardown(() => socket.terminate())
  const messages: string[] = []
  socket.on('message', (data) => messages.push(String(data)))
  await until(
    () => messages.length,
    (count) => count > 0,
    'the greeting',
  )
  return { socket, messages }
}

t.test('recordings of two cameras that start at once under one name do not touch each other', async (t) => {
  const server = await startServer(t, { args: TWO_CAMERAS })
  const api = await login(server)
  for (let round = 0; round < 3; round++) {
    const starts = await Promise.all(
      [0, 1].map((camera) => api.post('/api/recording/start', { camera, filename: `same${round}` })),
    )
    t.same(
      starts.map(({ status }) => status),
      [200, 200],
    )
    t.same(new Set(starts.map(({ body }) => String(body.filename))), new Set([`same${round}.mp4`, `same${round}_1.mp4`]))
    const stops = await Promise.all([0, 1].map((camera) => api.post('/api/recording/stop', { camera, finalize: true })))
    for (const { body } of stops) {
      t.ok(Number(body.size) > 0)
      t.ok(existsSync(hostPath(server, body.path)))
    }
  }
})

t.test('a recording that is stopped at once still holds a picture', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  await api.post('/api/recording/start', {})
  await api.post('/api/recording/stop')
  t.match((await api.get('/api/recordings')).body, { recordings: [{ state: 'ready' }] })
})

t.test('changes at the same time all hold', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  for (let value = 40; value < 60; value++) {
    await Promise.all([
      api.put('/api/camera/settings', { brightness: value }),
      api.put('/api/camera/settings', { contrast: value }),
      api.put('/api/camera/settings', { saturation: value }),
    ])
    t.match((await api.get('/api/camera/settings')).body, { brightness: value, contrast: value, saturation: value })
  }
  const twice = await Promise.all([api.post('/api/camera/stop'), api.post('/api/camera/stop'), api.post('/api/camera/start')])
  for (const { status } of twice) t.equal(status, 200)
  await until(
    () => api.get('/api/camera/status'),
    ({ body }) => Boolean(body.streaming),
    'the picture',
  )
})

t.test('/stream1 is the active camera, in whatever order the cameras come back', async (t) => {
  const server = await startServer(t, { args: TWO_CAMERAS })
  const api = await login(server)
  for (const [action, camera] of [
    ['stop', 0],
    ['stop', 1],
    ['start', 1],
    ['start', 0],
  ] as const) {
    t.equal((await api.post(`/api/camera/${action}`, { camera })).status, 200)
  }
  await until(
    () => api.get('/api/camera/status'),
    ({ body }) => Boolean(body.streaming),
    'the picture',
  )
  const client = await RtspClient.play(server, '/stream1')
  await client.gotKeyFrames()
  const { body } = await api.get('/api/streams')
  const streams = body.streams as unknown as { path: string }[]
  t.match(
    streams.find(({ path }) => path === '/stream1'),
    { camera: 0, consumers: 1 },
  )
  await client.teardown()
})

t.test('one message may change the mode and record', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const { socket, messages } = await openSocket(t, server, api)
  socket.send(JSON.stringify({ resolution: '640x480', fps: 15, record: true, snap: true }))
  await until(
    () => messages,
    (all) => all.includes('{"record":true}') && all.includes('{"snap":false}'),
    'both',
  )
  t.notMatch(messages.join('\n'), /"error"/)
  await recordedSeconds(api, 1)
  await api.post('/api/recording/stop')
  t.match((await api.get('/api/recordings')).body, { recordings: [{ resolution: '640x480', fps: 15, state: 'ready' }] })
})

t.test('a helper that is busy for a while is not killed, and too many requests at once are refused', async (t) => {
  const server = await startServer(t, { args: ['--rate-limits', 'off'] })
  const api = await login(server)
  const pid = helperPid(server)
  process.kill(pid, 'SIGSTOP')
  const asked = Promise.all(Array.from({ length: 80 }, () => api.bytes('/image')))
  // The server itself answers while the helper stands still.
  t.equal((await api.get('/api/status')).status, 200)
  process.kill(pid, 'SIGCONT')
  const answers = await asked
  t.ok(answers.every(({ status }) => status === 200 || status === 503))
  t.ok(answers.some(({ status }) => status === 200))
  t.equal(helperPid(server), pid)
})

t.test('the storage is pulled out: the recording ends, the server lives, and says so', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  await api.post('/api/recording/start', {})
  await recordedSeconds(api, 1)
  const media = join(server.dataDir, 'media')
  renameSync(media, `${media}.gone`)
  const { body } = await until(
    () => api.get('/api/recording/status'),
    ({ body }) => !body.recording,
    'the end',
  )
  t.match(body, { state: 'stopped', last_end: { reason: 'storage_lost' }, remaining_space: null })
  t.match((await api.get('/health')).body, { status: 'unhealthy', checks: { storage: 'error' } })
  t.match((await api.get('/api/status')).body, { system: { disk: null } })
  t.match(await api.post('/api/recording/start', {}), { status: 503, body: { error: { code: 'INSUFFICIENT_STORAGE' } } })
  renameSync(`${media}.gone`, media)
  await until(
    () => api.get('/health'),
    ({ body }) => String(body.checks?.storage) === 'ok',
    'the storage again',
  )
})

t.test('one unreadable recording does not keep the server from starting', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  await api.post('/api/recording/start', { filename: 'bad' })
  await recordedSeconds(api, 1)
  const found = readFileSync(join(server.dataDir, 'helper.pid'), 'utf8')
  t.ok(found)
  const { body } = await api.get('/api/recordings')
  const path = hostPath(server, body.recordings?.[0]?.path)
  await server.kill()
  await until(
    () => existsSync(`/proc/${Number.parseInt(found, 10)}/root/proc`),
    (alive) => !alive,
    'the end of the helper',
  )
  rmSync(path)
  mkdirSync(path)
  const again = await startServer(t, { dataDir: server.dataDir })
  t.match((await (await login(again)).get('/api/recordings')).body, { recordings: [{ state: 'defect' }] })
})

t.test('tags mark the running recording', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const tag = { category: 'event', title: 'Door', note: 'opened', timestamp: 500 }
  t.match(await api.post('/api/recording/tag', tag), { status: 409, body: { error: { code: 'CONFLICT' } } })
  await api.post('/api/recording/start', {})
  t.match((await api.post('/api/recording/tag', tag)).body, {
    success: true,
    tag: { id: 1, category: 1, timestamp: 500, title: 'Door', note: 'opened', createdBy: 'admin' },
  })
  t.match((await api.post('/api/v1/recording/tag', { category: 'Person', title: 'Visitor' })).body.data, { tag: { note: '' } })
  t.match(await api.post('/api/recording/tag', { category: 'gossip', title: 'x' }), {
    status: 400,
    body: { error: { code: 'INVALID_REQUEST', details: 'body.category' } },
  })
  await api.post('/api/recording/stop')
  t.match((await api.get('/api/recordings')).body, { recordings: [{ tagMarkers: 2 }] })
  t.equal((await api.delete('/api/recordings/1')).status, 200)
})

t.test('what the user has set for recordings holds for those that do not say otherwise', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const { socket, messages } = await openSocket(t, server, api)
  const settings = { resolution: '640x360', fps: 15, bitrate: 1_000_000, audio: false, format: 'mp4' }
  socket.send(JSON.stringify({ videoRecordingSettings: settings }))
  await until(
    () => messages.length,
    (count) => count > 1,
    'the broadcast',
  )
  t.match((await api.post('/api/recording/start', { duration: 8 })).body, { estimated_size: 1_000_000 })
  await api.post('/api/recording/stop')
  t.match((await api.get('/api/recordings')).body, { recordings: [{ resolution: '640x360', fps: 15 }] })
  messages.length = 0
  socket.send(JSON.stringify({ recordingStorage: { primary: '/elsewhere', backup: '/media/backup/recordings', network: '' } }))
  await until(
    () => messages.length,
    (count) => count > 0,
    'the refusal',
  )
  t.match(JSON.parse(messages[0] ?? ''), { error: { code: 'UNSUPPORTED_SETTING', details: 'recordingStorage.primary' } })
})
