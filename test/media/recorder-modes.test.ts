import { join } from 'node:path'
import t from 'tap'
import { until } from '../support/api.ts'
import { gaps, readFrameNumbers } from '../support/frames.ts'
import { addTestCamera, type Helper, probe, startHelper, steps, untilEnded, untilFrames } from '../support/helper.ts'
import { beepsAfterFlashes } from '../support/sync.ts'

const FPS = 30
const WIDTH = 640

async function captured(helper: Helper, frames: number): Promise<number> {
  const { frames_captured } = await helper.camera()
  const camera = await until(
    () => helper.camera(),
    (camera) => camera.frames_captured >= frames_captured + frames,
    `${frames} more frames`,
  )
  return camera.frames_captured
}

function jumps(numbers: readonly (number | null)[]): number[] {
  return numbers.slice(1).map((number, i) => (number ?? 0) - (numbers[i] ?? 0))
}

t.test('what happened before the start is in front', async (t) => {
  const helper = await startHelper(t)
  await addTestCamera(helper, { audio: true, width: WIDTH, gop: 15 })
  const path = (id: number) => join(helper.folder, `${id}.mp4`)
  const start = (id: number, pre_roll_ms: number, audio: 'aac' | 'mp3' | null = 'aac') =>
    helper.call('recorder.start', { id, camera: 0, path: path(id), stream: 'stream1', audio, pre_roll_ms, duration_ms: 2000 })
  t.match(await start(1, 4000), { pre_roll_ms: 0 }, 'nothing is kept')
  await untilEnded(helper, 1)
  await helper.call('camera.set_buffer', { id: 0, stream: 'stream1', bytes: 8_000_000 })
  await captured(helper, 6 * FPS)
  const before = (await helper.camera()).frames_captured
  const { pre_roll_ms } = await start(2, 4000)
  t.ok(pre_roll_ms > 3400 && pre_roll_ms <= 4000, `${pre_roll_ms} ms of pre-roll`)
  t.match(await helper.recorder(2), { pre_roll_ms, mode: 'video', paused: false, part: 1 })
  const ended = await untilEnded(helper, 2)
  t.equal(ended.reason, 'duration')
  t.ok(Math.abs(ended.duration_ms - pre_roll_ms - 2000) < 40, `${ended.duration_ms} ms: the duration counts from the start on`)
  const numbers = await readFrameNumbers({ input: path(2), captured: WIDTH })
  t.same(gaps(numbers), [], 'past and present are one')
  const age = before - (numbers[0] ?? 0)
  t.ok(Math.abs(age - (pre_roll_ms / 1000) * FPS) <= 4, `the first frame is ${age} frames older than the start`)
  const { video, audio } = await probe(path(2))
  t.ok(Math.abs((audio?.seconds ?? 0) - video.seconds) <= 0.06)
  const offsets = await beepsAfterFlashes(path(2), WIDTH)
  t.ok(offsets.length >= 5, `${offsets.length} beeps: the past has its sound`)
  t.ok(
    offsets.every((offset) => Math.abs(offset) < 0.06),
    offsets.join(', '),
  )
  t.match(await start(3, 1000, null), {}, 'at most what was asked for')
  const short = await untilEnded(helper, 3)
  t.ok(short.duration_ms <= 3040 && short.duration_ms > 2400, `${short.duration_ms} ms`)
  t.match(await start(4, 4000, 'mp3'), {}, 'sound in a codec that is not kept')
  await untilEnded(helper, 4)
  const other = await probe(path(4))
  t.ok(other.video.seconds > 5)
  const began = helper.events('recorder.began')
  t.same(
    began.map(({ id }) => id),
    [1, 2, 3, 4],
  )
  t.ok(Number(began[0]?.age_ms) < 1000, 'the newest key frame at most')
  const age_ms = Number(began[1]?.age_ms)
  t.ok(age_ms >= pre_roll_ms && age_ms < pre_roll_ms + 1000, `the first picture was told to be ${age_ms} ms old`)
  t.ok(Math.abs((other.audio?.seconds ?? 0) - other.video.seconds) <= 0.06, 'is silence in the past')
})

t.test('the past is forgotten with its encoding, and ends with the buffer', async (t) => {
  const helper = await startHelper(t)
  await addTestCamera(helper, { width: WIDTH, gop: 15 })
  const start = async (id: number) => {
    const path = join(helper.folder, `${id}.mp4`)
    const { pre_roll_ms } = await helper.call('recorder.start', {
      id,
      camera: 0,
      path,
      stream: 'stream1',
      pre_roll_ms: 10_000,
      duration_ms: 500,
    })
    await untilEnded(helper, id)
    return pre_roll_ms
  }
  await helper.call('camera.set_buffer', { id: 0, stream: 'stream1', bytes: 8_000_000 })
  await captured(helper, 3 * FPS)
  const stream = { name: 'stream1', width: WIDTH, height: 360, fps: FPS, gop: 15, audio: null }
  await helper.call('camera.configure', { id: 0, streams: [{ ...stream, bitrate_kbps: 700 }] })
  await captured(helper, FPS)
  const fresh = await start(1)
  t.ok(fresh > 300 && fresh < 1500, `${fresh} ms since the change`)
  await helper.call('camera.set_buffer', { id: 0, stream: 'stream1', bytes: 100_000 })
  await captured(helper, 4 * FPS)
  const bounded = await start(2)
  t.ok(bounded < 3500, `100 kB hold ${bounded} ms`)
  await helper.call('camera.set_buffer', { id: 0, stream: 'stream1', bytes: 0 })
  t.equal(await start(3), 0)
  await until(
    () => helper.camera(),
    ({ streams }) => streams[0]?.encoder === null,
    'the end of the encoder',
  )
  await t.rejects(helper.call('camera.set_buffer', { id: 0, stream: 'none', bytes: 1 }), { code: -32001 })
  await t.rejects(helper.call('camera.set_buffer', { id: 0, stream: 'stream1', bytes: 1, audio: 'aac' }), { code: -32004 })
  await t.rejects(helper.call('camera.set_buffer', { id: 0, stream: 'stream1', bytes: 268_435_457 }), {
    code: -32602,
  })
})

for (const [container, video] of [
  ['mp4', 'h264'],
  ['mp4', 'h265'],
  ['avi', 'mjpeg'],
] as const) {
  t.test(`timelapse in ${container} with ${video}`, async (t) => {
    const helper = await startHelper(t)
    await addTestCamera(helper, { width: WIDTH })
    const path = join(helper.folder, `t.${container}`)
    const formats = { container, video, timelapse: { interval_ms: 200, playback_fps: 25 } }
    const started = await helper.call('recorder.start', {
      id: 1,
      camera: 0,
      path,
      stream: 'stream1',
      ...formats,
      duration_ms: 5000,
    })
    t.match(started, { width: WIDTH, height: 360, fps: 25 })
    await untilFrames(helper, 1, 5)
    t.match((await helper.camera()).streams[0], { encoder: null, frames_encoded: 0 }, "the camera's encoder does not run")
    t.match(await helper.recorder(1), { mode: 'timelapse' })
    t.match(await untilEnded(helper, 1), { reason: 'duration', frames: 25, duration_ms: 1000 })
    const probed = await probe(path)
    t.equal(probed.video.packets, 25)
    t.ok(steps(probed.video.times).every((step) => Math.abs(step - 40) < 0.1))
    const numbers = await readFrameNumbers({ input: path, captured: WIDTH })
    t.ok(
      jumps(numbers).every((jump) => jump >= 4 && jump <= 8),
      `a picture each 6 frames: ${jumps(numbers).join(', ')}`,
    )
    t.ok(Math.abs((numbers.at(-1) ?? 0) - (numbers[0] ?? 0) - 24 * 6) <= 2, 'without drift')
  })
}

t.test('timelapse: pause, parts, a camera without signal', async (t) => {
  const helper = await startHelper(t)
  await addTestCamera(helper, { width: WIDTH })
  const path = join(helper.folder, 'p.mp4')
  const timelapse = { interval_ms: 100, playback_fps: 10 }
  await helper.call('recorder.start', {
    id: 1,
    camera: 0,
    path,
    stream: 'stream1',
    timelapse,
    part_max_ms: 1000,
    duration_ms: 3000,
  })
  await untilFrames(helper, 1, 5)
  await helper.call('recorder.pause', { id: 1 })
  await captured(helper, 45)
  await helper.call('recorder.resume', { id: 1 })
  t.match(await untilEnded(helper, 1), { reason: 'duration', frames: 30 })
  const parts = helper.events('recorder.part')
  t.ok(parts.length >= 3, `${parts.length} parts`)
  const numbers: (number | null)[] = []
  for (const part of parts) numbers.push(...(await readFrameNumbers({ input: part.path, captured: WIDTH })))
  t.equal(numbers.length, 30)
  t.equal(jumps(numbers).filter((jump) => jump > 30).length, 1, jumps(numbers).join(', '))

  const nothing = { type: 'v4l2', device: '/nowhere' } as const
  const mode = { width: WIDTH, height: 360, fps: FPS }
  const controls = { brightness: 50, contrast: 50, saturation: 50 }
  const streams = [{ name: 's', ...mode, bitrate_kbps: 1000, gop: 60, audio: null }]
  await helper.call('camera.add', { id: 1, source: nothing, audio: null, mode, controls, streams })
  const empty = join(helper.folder, 'n.mp4')
  await helper.call('recorder.start', { id: 2, camera: 1, path: empty, stream: 's', timelapse, duration_ms: 1000 })
  const missed = await until(
    () => helper.recorder(2),
    (recorder) => (recorder?.frames_dropped ?? 0) >= 5,
    'slots without a picture',
  )
  t.equal(missed?.frames, 0)
  t.match(await untilEnded(helper, 2), { reason: 'duration', frames: 0 })
})

for (const [container, video] of [
  ['mp4', 'h264'],
  ['avi', 'mjpeg'],
] as const) {
  t.test(`slow motion in ${container} with ${video}`, async (t) => {
    const helper = await startHelper(t)
    await addTestCamera(helper, { width: WIDTH, fps: 120 })
    const path = join(helper.folder, `s.${container}`)
    const encode = { width: WIDTH, height: 360, fps: 120, bitrate_kbps: 2000 }
    const formats = { container, video, slow_motion: { playback_fps: 30 } }
    const started = await helper.call('recorder.start', {
      id: 1,
      camera: 0,
      path,
      stream: 'stream1',
      ...formats,
      encode,
      duration_ms: 1500,
    })
    t.match(started, { fps: 30 })
    t.match(await untilEnded(helper, 1), { reason: 'duration', frames: 180, duration_ms: 6000 })
    const probed = await probe(path)
    t.equal(probed.video.packets, 180)
    t.equal(probed.video.r_frame_rate, '30/1')
    t.ok(steps(probed.video.times).every((step) => Math.abs(step - 1000 / 30) < 0.01))
    t.ok(Math.abs(probed.video.seconds - 6) < 0.002)
    t.same(gaps(await readFrameNumbers({ input: path, captured: WIDTH })), [], 'every captured picture')
  })
}
