/** Every mode, container and codec, as a client asks for it, and what other readers find in the file. */
import t from 'tap'
import { login, until } from '../support/api.ts'
import { readFrameNumbers } from '../support/frames.ts'
import { CAMERA, checkFrames, FPS, hostPath, NAMES, probe, record, SIZE } from '../support/recorded.ts'
import { startServer } from '../support/server.ts'

t.test('video: every container with every codec that it carries', async (t) => {
  const server = await startServer(t, { args: CAMERA })
  const api = await login(server)
  const formats = [
    ['mp4', 'h264', 'aac'],
    ['mp4', 'h264', 'mp3'],
    ['mp4', 'h265', 'aac'],
    ['mp4', 'h265', 'mp3'],
    ['mp4', 'h264', null],
    ['avi', 'h264', 'pcm'],
    ['avi', 'h264', 'mp3'],
    ['avi', 'mjpeg', 'pcm'],
    ['avi', 'mjpeg', 'mp3'],
    ['avi', 'mjpeg', null],
  ] as const
  for (const [format, video_codec, audio_codec] of formats) {
    const name = `${format} ${video_codec} ${audio_codec}`
    const sound = audio_codec === null ? { includeAudio: false } : { includeAudio: true, audio_codec }
    const entry = await record(api, { mode: 'video', format, video_codec, ...sound, duration: 2 })
    t.match(entry, { state: 'ready', mediaType: 'video', mediaEncoding: format }, name)
    const path = hostPath(server, entry.path)
    const { video, audio, seconds } = probe(path)
    t.equal(video.codec_name, NAMES[video_codec], name)
    t.equal(video.r_frame_rate, `${FPS}/1`, `${name}: frame rate`)
    t.equal(Number(video.nb_read_packets), 2 * FPS, `${name}: frames`)
    t.equal(audio?.codec_name, audio_codec === null ? undefined : NAMES[audio_codec], name)
    t.ok(Math.abs(seconds - 2) < 0.06, `${name}: ${seconds} s`)
    t.ok(Math.abs(Number(entry.durationMs) - 2000) < 60, `${name}: ${entry.durationMs} ms in the catalogue`)
    await checkFrames(t, [path], name)
  }
})

t.test('what no file can hold is refused, and nothing is started', async (t) => {
  const server = await startServer(t, { args: CAMERA })
  const api = await login(server)
  for (const body of [
    { format: 'mp4', video_codec: 'mjpeg' },
    { format: 'avi', video_codec: 'h265' },
    { format: 'mp4', audio_codec: 'pcm' },
    { format: 'avi', audio_codec: 'aac' },
  ]) {
    const answer = await api.post('/api/recording/start', body)
    t.match(answer, { status: 422, body: { error: { code: 'INVALID_FORMAT' } } }, JSON.stringify(body))
  }
  t.match((await api.get('/api/recordings')).body, { total: 0 })
  t.match((await api.get('/api/recording/status')).body, { recording: false, state: 'stopped' })
})

t.test('timelapse and slow motion, in both containers', async (t) => {
  const server = await startServer(t, { args: CAMERA })
  const api = await login(server)
  for (const [format, video_codec] of [
    ['mp4', 'h264'],
    ['mp4', 'h265'],
    ['avi', 'h264'],
    ['avi', 'mjpeg'],
  ] as const) {
    const lapse = await record(api, { mode: 'timelapse', format, video_codec, interval_ms: 100, duration: 3 })
    t.match(lapse, { state: 'ready', mediaType: 'timelapse', mediaEncoding: format, fps: 30 })
    const found = probe(hostPath(server, lapse.path))
    t.ok(Math.abs(Number(found.video.nb_read_packets) - 30) <= 1, `${found.video.nb_read_packets} pictures of 3 s at 100 ms`)
    t.ok(Math.abs(found.seconds - Number(found.video.nb_read_packets) / 30) < 0.02, `${found.seconds} s at 30 a second`)
    t.equal(found.video.codec_name, NAMES[video_codec])
    t.equal(found.audio, undefined)
    const numbers = await readFrameNumbers({ input: hostPath(server, lapse.path), captured: SIZE.width })
    // A busy machine may take one picture a little late; the ones after it keep to the schedule.
    const late = numbers.map((number, i) => Number(number) - Number(numbers[0]) - 3 * i)
    t.ok(
      late.every((frames) => Math.abs(frames) <= 3),
      `every third frame; off the schedule by ${late} frames`,
    )
    t.equal(new Set(numbers).size, numbers.length, 'none twice')

    const slow = await record(api, { mode: 'slowmotion', format, video_codec, fps: 60, duration: 2 })
    t.match(slow, { state: 'ready', mediaType: 'slowmotion', fps: 30 })
    const path = hostPath(server, slow.path)
    const { video, seconds } = probe(path)
    t.ok(Math.abs(Number(video.nb_read_packets) - 120) <= 2, `${video.nb_read_packets} frames of 2 s at 60`)
    t.ok(Math.abs(seconds - 4) < 0.1, `${seconds} s played at 30`)
    t.equal(video.r_frame_rate, '30/1')
    await checkFrames(t, [path], `slow motion ${format} ${video_codec}`)
    await until(
      () => api.get('/api/camera/status'),
      ({ body }) => Number(body.cameras?.[0]?.framerate) === FPS,
      'the rate that is set, afterwards',
    )
  }
})
