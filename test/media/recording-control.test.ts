/** Pauses, parts and several cameras: no frame is lost or doubled. */
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { type Json, login, until } from '../support/api.ts'
import { gaps, readFrameNumbers } from '../support/frames.ts'
import { helperPid } from '../support/process.ts'
import { CAMERA, checkFrames, FPS, finished, hostPath, probe, record, SIZE } from '../support/recorded.ts'
import { startServer } from '../support/server.ts'

t.test('pause and resume leave no gap in the time line, and no frame twice', async (t) => {
  const server = await startServer(t, { args: CAMERA })
  const api = await login(server)
  for (const body of [{ format: 'mp4' }, { format: 'avi', video_codec: 'mjpeg' }]) {
    const { body: started } = await api.post('/api/recording/start', { mode: 'video', ...body })
    const id = String(started.recordingId)
    for (let i = 0; i < 2; i++) {
      await delay(900)
      t.match(await api.post('/api/recording/pause'), { status: 200, body: { state: 'paused' } })
      const during = (await api.get('/api/recording/status')).body
      t.match(during, { recording: false, paused: true, recording_id: id })
      t.match(await api.post('/api/recording/stop'), { status: 409 }, 'not stopped while paused')
      await delay(600)
      t.equal(Number((await api.get('/api/recording/status')).body.position_ms), Number(during.position_ms), 'time stands still')
      t.match(await api.post('/api/recording/resume'), { status: 200, body: { state: 'recording' } })
    }
    await delay(900)
    t.match(await api.post('/api/recording/stop'), { status: 200 })
    const entry = await finished(api, id)
    const path = hostPath(server, entry.path)
    const numbers = await readFrameNumbers({ input: path, captured: SIZE.width })
    const jumps = gaps(numbers)
    t.equal(jumps.length, 2, `one jump a pause: ${jumps}`)
    t.ok(
      numbers.every((number, i) => i === 0 || Number(number) > Number(numbers[i - 1])),
      'never back',
    )
    const { video, audio, seconds } = probe(path)
    t.ok(Math.abs(seconds - numbers.length / FPS) < 0.06, `${seconds} s for ${numbers.length} frames`)
    t.equal(Number(video.nb_read_packets), numbers.length)
    t.ok(Math.abs(Number(audio?.seconds) - seconds) < 0.06, `sound ${audio?.seconds} s, picture ${seconds} s`)
    t.ok(Math.abs(Number(entry.durationMs) - seconds * 1000) < 60)
  }
})

t.test('a long recording goes on in further parts without losing a frame, as one entry', async (t) => {
  const server = await startServer(t, { args: CAMERA })
  const api = await login(server)
  const changed = await api.put('/api/config/storage', { storage: { segment_max_seconds: 2 } })
  t.equal(changed.status, 200, JSON.stringify(changed.body))
  for (const body of [{ format: 'mp4' }, { format: 'avi', video_codec: 'h264' }]) {
    const entry = await record(api, { mode: 'video', ...body, duration: 7 })
    t.match(entry, { state: 'ready' })
    const { body: info } = await api.get(`/api/recordings/${entry.id}/info`)
    const parts = info.parts as unknown as Json[]
    t.ok(parts.length >= 4, `${parts.length} parts of 7 s`)
    const paths = parts.map((part) => hostPath(server, part.path))
    t.equal(await checkFrames(t, paths, `parts as ${body.format}`), 7 * FPS)
    for (const path of paths) t.equal(probe(path).video.codec_name, 'h264', 'each plays alone')
    const sum = parts.reduce((total, part) => total + Number(part.size), 0)
    t.equal(Number(entry.size), sum)
  }
})

t.test('several cameras record at once, each for itself', async (t) => {
  const server = await startServer(t, { args: [...CAMERA, ...CAMERA, ...CAMERA] })
  const api = await login(server)
  const ids: string[] = []
  for (const camera of [0, 1, 2]) {
    const { status, body } = await api.post('/api/recording/start', { camera, filename: `camera${camera}` })
    t.equal(status, 200)
    ids.push(String(body.recording_id))
  }
  t.match(await api.post('/api/recording/start', { camera: 1 }), {
    status: 409,
    body: { error: { code: 'RECORDING_IN_PROGRESS' } },
  })
  await delay(1500)
  t.match(await api.post('/api/recording/pause', { camera: 1 }), { status: 200 })
  t.match((await api.get('/api/recording/status?camera=0')).body, { recording: true })
  t.match(await api.post('/api/recording/resume', { camera: 1 }), { status: 200 })
  for (const camera of [2, 0, 1]) t.equal((await api.post('/api/recording/stop', { camera })).status, 200)
  for (const id of ids) t.match(await finished(api, id), { state: 'ready', camera: ids.indexOf(id) })
})

t.test('when the helper dies, a paused recording stays paused, and slow motion gives the camera back', async (t) => {
  const server = await startServer(t, { args: CAMERA })
  const api = await login(server)
  await api.post('/api/recording/start', {})
  await delay(900)
  t.equal((await api.post('/api/recording/pause')).status, 200)
  const kill = async () => {
    process.kill(helperPid(server), 'SIGKILL')
    await until(
      () => api.get('/api/camera/status'),
      ({ body }) => body.cameras?.[0]?.connected?.toString() === 'false',
      'no camera',
    )
    await until(
      () => api.get('/api/camera/status'),
      ({ body }) => body.cameras?.[0]?.connected?.toString() === 'true',
      'the camera again',
    )
  }
  await kill()
  t.match((await api.get('/api/recording/status')).body, { state: 'paused', recording_id: '1' })
  t.match(await api.post('/api/recording/resume'), { status: 200, body: { recording_id: '2', state: 'recording' } })
  t.equal((await api.post('/api/recording/stop')).status, 200)
  for (const id of ['1', '2']) t.match(await finished(api, id), { state: 'ready' })

  await api.post('/api/recording/start', {})
  await delay(500)
  t.equal((await api.post('/api/recording/pause')).status, 200)
  await kill()
  t.match(await api.post('/api/recording/stop'), { status: 200, body: { recording_id: '3' } }, 'or it is given up')
  t.match((await api.get('/api/recording/status')).body, { state: 'stopped', recording_id: null })

  t.equal((await api.post('/api/recording/start', { mode: 'slowmotion', fps: 60 })).status, 200)
  await delay(900)
  await kill()
  await until(
    () => api.get('/api/recording/status'),
    ({ body }) => String(body.recording_id) === '5' && Number(body.position_ms) > 500,
    'slow motion goes on',
  )
  t.equal((await api.post('/api/recording/stop')).status, 200)
  t.match(await finished(api, '5'), { state: 'ready', mediaType: 'slowmotion' })
  const { body } = await api.get('/api/camera/status')
  t.match(body.cameras?.[0], { framerate: FPS }, 'as it is set')
})

t.test('pre-roll: a recording begins in the past that is kept, and is refused where none is', async (t) => {
  const server = await startServer(t, { args: CAMERA })
  const api = await login(server)
  t.match(await api.post('/api/recording/start', { pre_roll: true }), {
    status: 422,
    body: { error: { code: 'UNSUPPORTED_SETTING' } },
  })
  t.equal((await api.put('/api/config/camera', { camera: { pre_roll: true } })).status, 200)
  await delay(3500)
  const entry = await record(api, { pre_roll: true, duration: 1 })
  t.ok(Number(entry.durationMs) > 2500, `${entry.durationMs} ms, of which one second is new`)
  await checkFrames(t, [hostPath(server, entry.path)], 'past and present')
})
