import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { RecordedAudio } from '../../app/server/media/protocol.ts'
import { gaps, readFrameNumbers } from '../support/frames.ts'
import { addTestCamera, type Helper, startHelper, untilFrames } from '../support/helper.ts'

const FPS = 30
const WIDTH = 640

/** Walks the movi list of an AVI that nobody finished; returns what follows its last whole chunk, and the pictures. */
function walkAvi(t: Test, path: string): { torn: number; pictures: number } {
  const file = readFileSync(path)
  t.equal(file.toString('latin1', 0, 4), 'RIFF')
  t.equal(file.toString('latin1', 8, 12), 'AVI ')
  const hdrl = file.readUInt32LE(16)
  const list = 20 + hdrl
  t.equal(file.toString('latin1', list, list + 4), 'LIST')
  t.equal(file.toString('latin1', list + 8, list + 12), 'movi')
  let at = list + 12
  let pictures = 0
  while (at + 8 <= file.length) {
    const size = file.readUInt32LE(at + 4)
    if (!/^0[01](dc|wb)$/.test(file.toString('latin1', at, at + 4))) throw new Error(`no chunk at ${at}`)
    if (at + 8 + size > file.length) break
    if (file.toString('latin1', at + 2, at + 4) === 'dc') pictures++
    at += 8 + size + (size % 2)
  }
  return { torn: Math.max(0, file.length - at), pictures }
}

async function killed(helper: Helper): Promise<number> {
  const { frames_captured } = await helper.camera()
  await helper.kill()
  return frames_captured
}

for (const [container, video, audio] of [
  ['mp4', 'h264', 'aac'],
  ['mp4', 'h265', 'mp3'],
  ['avi', 'h264', 'pcm'],
  ['avi', 'mjpeg', 'mp3'],
] as readonly (readonly ['mp4' | 'avi', 'h264' | 'h265' | 'mjpeg', RecordedAudio])[]) {
  t.test(`kill -9 while recording ${container} with ${video} and ${audio}`, async (t) => {
    const helper = await startHelper(t)
    await addTestCamera(helper, { audio: true, width: WIDTH })
    const path = join(helper.folder, `k.${container}`)
    await helper.call('recorder.start', { id: 1, camera: 0, path, stream: 'stream1', container, video, audio })
    await untilFrames(helper, 1, 3 * FPS + 11)
    const newest = await killed(helper)
    const numbers = await readFrameNumbers({ input: path, captured: WIDTH })
    t.same(gaps(numbers), [])
    t.ok(newest - (numbers.at(-1) ?? 0) <= FPS, `the last picture is ${newest - (numbers.at(-1) ?? 0)} frames old`)
    if (container !== 'avi') return
    const { torn, pictures } = walkAvi(t, path)
    t.ok(torn < 200_000, `${torn} bytes of a torn chunk`)
    t.ok(newest - (numbers[0] ?? 0) - pictures <= 5, `${pictures} whole pictures`)
  })
}

t.test('kill -9 while paused loses nothing', async (t) => {
  const helper = await startHelper(t)
  await addTestCamera(helper, { audio: true, width: WIDTH })
  const formats = [
    ['a.mp4', { audio: 'aac' }],
    ['b.avi', { container: 'avi', video: 'mjpeg', audio: 'pcm' }],
  ] as const
  const frames: number[] = []
  for (const [id, [name, more]] of formats.entries()) {
    await helper.call('recorder.start', { id, camera: 0, path: join(helper.folder, name), stream: 'stream1', ...more })
    await untilFrames(helper, id, 2 * FPS)
    await helper.call('recorder.pause', { id })
    frames.push((await helper.recorder(id))?.frames ?? 0)
  }
  await untilFrames(helper, 0, frames[0] ?? 0)
  await killed(helper)
  // A fragment that had begun is lost in mp4.
  const mp4 = await readFrameNumbers({ input: join(helper.folder, 'a.mp4'), captured: WIDTH })
  t.ok(mp4.length >= (frames[0] ?? 0) - FPS / 2 - 1, `${mp4.length} of ${frames[0]}`)
  t.ok(walkAvi(t, join(helper.folder, 'b.avi')).pictures >= (frames[1] ?? 0) - 1)
})

for (const [container, video] of [
  ['mp4', 'h264'],
  ['avi', 'mjpeg'],
] as const) {
  t.test(`kill -9 of a timelapse in ${container} loses at most its last pictures`, async (t) => {
    const helper = await startHelper(t)
    await addTestCamera(helper, { width: WIDTH })
    const path = join(helper.folder, `t.${container}`)
    const timelapse = { interval_ms: 500, playback_fps: 30 }
    await helper.call('recorder.start', { id: 1, camera: 0, path, stream: 'stream1', container, video, timelapse })
    const { frames } = await untilFrames(helper, 1, 6)
    await killed(helper)
    const numbers = await readFrameNumbers({ input: path, captured: WIDTH })
    t.ok(numbers.length >= frames - 2, `${numbers.length} of ${frames}`)
  })
}

t.test('kill -9 with parts: those before are whole', async (t) => {
  const helper = await startHelper(t)
  await addTestCamera(helper, { audio: true, width: WIDTH })
  const path = join(helper.folder, 'p.mp4')
  await helper.call('recorder.start', { id: 1, camera: 0, path, stream: 'stream1', audio: 'aac', part_max_ms: 1000 })
  await untilFrames(helper, 1, 4 * FPS)
  const parts = helper.events('recorder.part')
  t.ok(parts.length >= 2)
  await killed(helper)
  const numbers: (number | null)[] = []
  for (const part of parts) {
    const found = await readFrameNumbers({ input: part.path, captured: WIDTH })
    t.equal(found.length, part.frames)
    numbers.push(...found)
  }
  t.same(gaps(numbers), [])
})
