import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { login, until } from '../../support/api.ts'
import { startQuickServer } from '../../support/server.ts'

function hostPath(dataDir: string, devicePath: string): string {
  return join(dataDir, devicePath.replace('/media/data', 'media'))
}

t.test('variant A: start, status, refusals while recording, stop, list, download, delete', async (t) => {
  const server = await startQuickServer(t)
  const api = await login(server)
  t.match(await api.post('/api/recording/stop'), { status: 409, body: { error: { code: 'CONFLICT' } } })
  t.match(await api.post('/api/settings', { recordingQueueSize: 300 }), { status: 200 })
  const start = await api.post('/api/recording/start', {
    filename: 'visit',
    quality: 'low',
    resolution: '640x360',
    framerate: 15,
    duration: 60,
  })
  t.match(start, { status: 200, body: { success: true, recording_id: '1', filename: 'visit.mp4', estimated_size: Number } })
  t.match((await api.get('/api/recording/status')).body, {
    recording: true,
    state: 'recording',
    recording_id: '1',
    filename: 'visit.mp4',
  })
  t.match(await api.post('/api/recording/start', {}), { status: 409, body: { error: { code: 'RECORDING_IN_PROGRESS' } } })
  t.match(await api.put('/api/camera/settings', { fps: 15 }), { status: 409, body: { error: { code: 'RECORDING_IN_PROGRESS' } } })
  t.match(await api.delete('/api/recordings/1'), { status: 409, body: { error: { code: 'RECORDING_IN_PROGRESS' } } })
  t.match(await api.get('/api/recordings/1'), { status: 409 })
  await until(
    () => api.get('/api/recording/status'),
    ({ body }) => Number(body.duration) >= 1,
    'a second of recording',
  )
  const stop = await api.post('/api/recording/stop')
  t.match(stop, {
    status: 200,
    body: { success: true, recording_id: '1', filename: 'visit.mp4', duration: Number, file_size: Number },
  })

  const list = await api.get('/api/v1/recordings')
  const entry = list.body.data?.recordings?.[0]
  t.match(list.body.data, { total: 1, limit: 100, offset: 0 })
  t.match(entry, {
    id: 1,
    mediaType: 'video',
    mediaEncoding: 'mp4',
    resolution: '640x360',
    fps: 15,
    state: 'ready',
    tagMarkers: 0,
  })
  const file = hostPath(server.dataDir, String(entry?.path))
  const found = JSON.parse(
    execFileSync('ffprobe', ['-v', 'error', '-show_streams', '-show_format', '-of', 'json', file], { encoding: 'utf8' }),
  )
  t.match(found.streams[0], { codec_name: 'h264', width: 640, height: 360, r_frame_rate: '15/1' })
  t.ok(Math.abs(Number(found.format.duration) * 1000 - Number(entry?.durationMs)) < 100)

  const whole = await api.bytes('/api/recordings/1')
  t.equal(whole.bytes.length, Number(stop.body.file_size))
  t.equal(whole.headers.get('content-type'), 'video/mp4')
  const part = await api.bytes('/api/recordings/1', { range: 'bytes=10-19' })
  t.equal(part.status, 206)
  t.same(part.bytes, whole.bytes.subarray(10, 20))
  t.match((await api.bytes('/api/recordings/1?download=true')).headers.get('content-disposition'), /attachment.*visit\.mp4/)

  t.match((await api.delete('/api/recordings/1')).body, { success: true })
  t.notOk(existsSync(file))
  t.match(await api.get('/api/recordings/1'), { status: 404, body: { error: { code: 'NOT_FOUND' } } })
})

t.test('variant B: numbers, milliseconds, the path; a duration ends by itself', async (t) => {
  const server = await startQuickServer(t)
  const api = await login(server)
  const start = await api.post('/api/v1/recording/start', {
    mode: 'video',
    resolution: '1280x720',
    fps: 30,
    bitrate: 2_000_000,
    format: 'mp4',
  })
  t.match(start.body, { status: 'success', data: { success: true, recordingId: 1, estimatedSize: 900_000_000 } })
  t.match(start.body.data?.filename, /^recording_\d{8}_\d{6}\.mp4$/)
  await until(
    () => api.get('/api/recording/status'),
    ({ body }) => Number(body.duration) >= 1,
    'a second of recording',
  )
  const stop = await api.post('/api/v1/recording/stop', { finalize: true })
  t.match(stop.body.data, {
    success: true,
    recordingId: 1,
    duration: Number,
    size: Number,
    path: /^\/media\/data\/recordings\/\d{4}\/\d\d\/\d\d\/recording_/,
  })
  t.ok(Number(stop.body.data?.duration) > 100, 'what lies in the file of a second or more, in milliseconds')

  await api.post('/api/recording/start', { duration: 1 })
  const status = await until(
    () => api.get('/api/recording/status'),
    ({ body }) => !body.recording,
    'its own end',
  )
  t.match(status.body, { recording: false, state: 'stopped', last_end: { reason: 'duration' } })
  const { body } = await until(
    () => api.get('/api/recordings?state=ready'),
    ({ body }) => Number(body.total) === 2,
    'the entry',
  )
  const duration = Number(body.recordings?.[0]?.durationMs)
  t.ok(duration >= 1000 && duration < 1030, `${duration} ms: the sound may be longer by one unit`)
})

t.test('what cannot be recorded is refused and leaves nothing', async (t) => {
  const server = await startQuickServer(t)
  const api = await login(server)
  for (const [body, status, code] of [
    [{ mode: 'timelapse', includeAudio: true }, 422, 'UNSUPPORTED_SETTING'],
    [{ format: 'avi', video_codec: 'h265' }, 422, 'INVALID_FORMAT'],
    [{ format: 'mkv' }, 400, 'INVALID_REQUEST'],
    [{ resolution: '3840x2160' }, 422, 'INVALID_RESOLUTION'],
    [{ duration: -1 }, 400, 'INVALID_REQUEST'],
    [{ duration: 31_000_000 }, 400, 'INVALID_REQUEST'],
    [{ duration: 2_000_000 }, 503, 'INSUFFICIENT_STORAGE'],
    [{ quality: 'best' }, 400, 'INVALID_REQUEST'],
    [{ colour: 'red' }, 400, 'INVALID_REQUEST'],
    [{ camera: 3 }, 404, 'NOT_FOUND'],
  ] as const) {
    t.match(await api.post('/api/recording/start', body), { status, body: { error: { code } } }, JSON.stringify(body))
  }
  t.match((await api.get('/api/recordings')).body, { total: 0 })
})

t.test('SIGTERM finishes a running recording and exits 0 within 5 seconds', async (t) => {
  const server = await startQuickServer(t)
  const api = await login(server)
  await api.post('/api/recording/start', {})
  await until(
    () => api.get('/api/recording/status'),
    ({ body }) => Number(body.duration) >= 1,
    'a second of recording',
  )
  const { code, ms } = await server.stop()
  t.equal(code, 0)
  t.ok(ms < 5000, `${ms} ms`)
  const again = await startQuickServer(t, { dataDir: server.dataDir })
  const { body } = await (await login(again)).get('/api/recordings')
  t.match(body, { total: 1, recordings: [{ state: 'ready' }] })
  t.notMatch(again.log.join('\n'), /interrupted recording/, 'it was finished by the first server, not recovered by the second')
})
