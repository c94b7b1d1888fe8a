import { statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { RecordedAudio } from '../../app/server/media/protocol.ts'
import { until } from '../support/api.ts'
import { gaps, readFrameNumbers } from '../support/frames.ts'
import { addTestCamera, type Helper, probe, startHelper, steps, untilEnded, untilFrames } from '../support/helper.ts'
import { beepsAfterFlashes } from '../support/sync.ts'

const FPS = 30
const WIDTH = 640

/** Pauses until the camera has captured so many more frames. */
async function pauseFor(helper: Helper, id: number, frames: number): Promise<number> {
  const { duration_ms } = await helper.call('recorder.pause', { id })
  const { frames_captured } = await helper.camera()
  const paused = await helper.recorder(id)
  await until(
    () => helper.camera(),
    (camera) => camera.frames_captured >= frames_captured + frames,
    'the pause',
  )
  const after = await helper.recorder(id)
  if (after?.frames !== paused?.frames || !after?.paused) throw new Error('the pause records')
  await helper.call('recorder.resume', { id })
  return duration_ms
}

const FORMATS: readonly (readonly ['mp4' | 'avi', RecordedAudio | null])[] = [
  ['mp4', 'aac'],
  ['mp4', 'mp3'],
  ['avi', 'pcm'],
  ['avi', 'mp3'],
  ['mp4', null],
]

for (const [container, audio] of FORMATS) {
  t.test(`two pauses leave no gap in the time line of ${container} with ${audio ?? 'no sound'}`, async (t) => {
    const helper = await startHelper(t)
    await addTestCamera(helper, { audio: true, width: WIDTH })
    const path = join(helper.folder, `p.${container}`)
    await helper.call('recorder.start', { id: 1, camera: 0, path, stream: 'stream1', container, audio })
    await untilFrames(helper, 1, FPS + 5)
    const first = await pauseFor(helper, 1, 20)
    t.ok(first >= 1000 && first < 2500, `paused at ${first} ms`)
    const again = await untilFrames(helper, 1, 3 * FPS)
    t.ok(again.duration_ms >= first)
    await pauseFor(helper, 1, 25)
    await untilFrames(helper, 1, 5 * FPS)
    const result = await helper.call('recorder.stop', { id: 1 })
    const { video, audio: sound } = await probe(path)
    const numbers = await readFrameNumbers({ input: path, captured: WIDTH })
    t.equal(numbers.length, result.frames)
    const jumps = numbers.slice(1).map((number, i) => (number ?? 0) - (numbers[i] ?? 0))
    t.equal(gaps(numbers).length, 2, `one jump for each pause: ${gaps(numbers).join('; ')}`)
    t.ok(
      jumps.every((jump) => jump === 1 || (jump >= 20 && jump < 60)),
      'what was captured during the pause is not there',
    )
    t.ok(
      steps(video.times).every((step) => Math.abs(step - 1000 / FPS) < 1),
      'pictures are evenly spaced',
    )
    t.ok(Math.abs(video.seconds - result.duration_ms / 1000) < 0.002)
    if (!sound) return
    t.ok(Math.abs(sound.seconds - video.seconds) <= 0.06, `${sound.seconds} s of sound for ${video.seconds} s`)
    const widest = Math.max(...steps(sound.times))
    t.ok(widest < 30, `units of sound are at most ${widest} ms apart`)
    const cuts = jumps.flatMap((jump, i) => (jump === 1 ? [] : [(i + 1) / FPS]))
    const offsets = await beepsAfterFlashes(path, WIDTH, cuts)
    t.ok(offsets.length >= 2)
    t.ok(
      offsets.every((offset) => Math.abs(offset) < 0.08),
      `beeps after flashes: ${offsets.map((offset) => Math.round(offset * 1000)).join(', ')} ms`,
    )
  })
}

t.test('pausing twice, stopping while paused, durations without pauses', async (t) => {
  const helper = await startHelper(t)
  await addTestCamera(helper, { width: WIDTH })
  const start = (id: number, duration_ms: number) =>
    helper.call('recorder.start', { id, camera: 0, path: join(helper.folder, `${id}.mp4`), stream: 'stream1', duration_ms })
  await start(1, 0)
  await start(2, 2000)
  await untilFrames(helper, 1, FPS)
  const { duration_ms } = await helper.call('recorder.pause', { id: 1 })
  t.same(await helper.call('recorder.pause', { id: 1 }), { duration_ms })
  await pauseFor(helper, 2, 60)
  await helper.call('recorder.resume', { id: 2 })
  const stopped = await helper.call('recorder.stop', { id: 1 })
  t.equal(stopped.duration_ms, duration_ms)
  t.equal(stopped.size_bytes, statSync(join(helper.folder, '1.mp4')).size)
  const ended = await untilEnded(helper, 2)
  t.match(ended, { reason: 'duration', duration_ms: 2000, frames: 2 * FPS })
  t.equal(gaps(await readFrameNumbers({ input: join(helper.folder, '2.mp4'), captured: WIDTH })).length, 1)
  for (const method of ['recorder.pause', 'recorder.resume'] as const)
    await t.rejects(helper.call(method, { id: 1 }), { code: -32001 })
})

t.test('a resumed recording that nobody else watches gets an encoder again', async (t) => {
  const helper = await startHelper(t)
  await addTestCamera(helper, { width: WIDTH })
  const path = join(helper.folder, 'a.mp4')
  const encode = { width: WIDTH, height: 360, fps: 15, bitrate_kbps: 500 }
  await helper.call('recorder.start', { id: 1, camera: 0, path, stream: 'stream1', encode })
  await untilFrames(helper, 1, 10)
  // Another that shares its encoder ends meanwhile: the paused one keeps it.
  await helper.call('recorder.start', { id: 2, camera: 0, path: join(helper.folder, 'b.mp4'), stream: 'stream1', encode })
  await untilFrames(helper, 2, 5)
  await helper.call('recorder.pause', { id: 1 })
  await helper.call('recorder.stop', { id: 2 })
  const { frames_captured } = await helper.camera()
  await until(
    () => helper.camera(),
    (camera) => camera.frames_captured > frames_captured + 3 * FPS,
    'three seconds',
  )
  await helper.call('recorder.resume', { id: 1 })
  const { frames } = (await helper.recorder(1)) ?? { frames: 0 }
  await untilFrames(helper, 1, frames + 20)
  await helper.call('recorder.stop', { id: 1 })
  const { video } = await probe(path)
  t.ok(steps(video.times).every((step) => Math.abs(step - 1000 / 15) < 1))
})
