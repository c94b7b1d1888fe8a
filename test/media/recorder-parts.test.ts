import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { RecorderPart } from '../../app/server/media/protocol.ts'
import { gaps, readFrameNumbers } from '../support/frames.ts'
import { addTestCamera, type Helper, probe, startHelper, untilEnded, untilFrames } from '../support/helper.ts'
import { memoryDisk } from '../support/scratch.ts'

const FPS = 30
const WIDTH = 640
const MiB = 1024 * 1024

function partsOf(helper: Helper, id: number): RecorderPart[] {
  return helper.events('recorder.part').filter((part) => part.id === id)
}

/** Each part plays alone, from 0 on; the numbers go on from part to part. */
async function checkParts(t: Test, parts: readonly RecorderPart[], withSound: boolean): Promise<void> {
  const numbers: (number | null)[] = []
  for (const [i, part] of parts.entries()) {
    t.equal(part.index, i + 1)
    t.equal(statSync(part.path).size, part.size_bytes)
    const { video, audio } = await probe(part.path)
    t.equal(video.times[0], 0)
    t.equal(video.packets, part.frames)
    t.ok(Math.abs(video.seconds - part.duration_ms / 1000) < 0.002)
    t.equal(audio !== undefined, withSound)
    if (audio) t.ok(Math.abs(audio.seconds - video.seconds) <= 0.06, `part ${i + 1}: ${audio.seconds} s for ${video.seconds} s`)
    numbers.push(...(await readFrameNumbers({ input: part.path, captured: WIDTH })))
  }
  t.same(gaps(numbers), [], 'nothing is lost or doubled between the parts')
}

for (const [container, audio] of [
  ['mp4', 'aac'],
  ['avi', 'mp3'],
] as const) {
  t.test(`a new part after a time, in ${container}`, async (t) => {
    const helper = await startHelper(t)
    await addTestCamera(helper, { audio: true, width: WIDTH, gop: 600 })
    const path = join(helper.folder, `a.${container}`)
    const part_max_ms = 2000
    await helper.call('recorder.start', {
      id: 1,
      camera: 0,
      path,
      stream: 'stream1',
      container,
      audio,
      part_max_ms,
      duration_ms: 9000,
    })
    const ended = await untilEnded(helper, 1)
    const parts = partsOf(helper, 1)
    t.ok(parts.length >= 5, `${parts.length} parts`)
    t.same(
      parts.map((part) => part.path),
      parts.map((_, i) => (i === 0 ? path : path.replace('/a.', `/a.part${i + 1}.`))),
    )
    for (const part of parts.slice(0, -1)) t.ok(part.duration_ms > 1500 && part.duration_ms < 2400, `${part.duration_ms} ms`)
    await checkParts(t, parts, true)
    const sum = (field: 'duration_ms' | 'size_bytes' | 'frames') => parts.reduce((total, part) => total + part[field], 0)
    t.equal(ended.frames, 9 * FPS)
    t.match(ended, { duration_ms: sum('duration_ms'), size_bytes: sum('size_bytes'), frames: sum('frames') })
    t.notOk(existsSync(path.replace('/a.', `/a.part${parts.length + 1}.`)), 'nothing opened in vain is left')
    const order = helper.told.filter(({ name }) => name.startsWith('recorder.')).map(({ name }) => name)
    t.same(order, ['recorder.began', ...parts.map(() => 'recorder.part'), 'recorder.ended'])
  })
}

t.test('a new part after so many bytes', async (t) => {
  const helper = await startHelper(t)
  await addTestCamera(helper, { width: WIDTH })
  const encode = { width: WIDTH, height: 360, fps: FPS, bitrate_kbps: 6000 }
  const path = join(helper.folder, 'b.avi')
  const formats = { container: 'avi', video: 'mjpeg' } as const
  await helper.call('recorder.start', { id: 1, camera: 0, path, stream: 'stream1', ...formats, encode, part_max_bytes: MiB })
  await untilFrames(helper, 1, 7 * FPS)
  await helper.call('recorder.stop', { id: 1 })
  const parts = partsOf(helper, 1)
  t.ok(parts.length >= 3, `${parts.length} parts`)
  for (const part of parts.slice(0, -1)) t.ok(part.size_bytes <= MiB && part.size_bytes > MiB / 2, `${part.size_bytes} bytes`)
  await checkParts(t, parts, false)
})

t.test('a pause at a change of parts', async (t) => {
  const helper = await startHelper(t)
  await addTestCamera(helper, { audio: true, width: WIDTH })
  const path = join(helper.folder, 'c.mp4')
  await helper.call('recorder.start', { id: 1, camera: 0, path, stream: 'stream1', audio: 'aac', part_max_ms: 2000 })
  // When the next part is open already, but not begun.
  await untilFrames(helper, 1, 54)
  await helper.call('recorder.pause', { id: 1 })
  await helper.call('recorder.resume', { id: 1 })
  await untilFrames(helper, 1, 100)
  const result = await helper.call('recorder.stop', { id: 1 })
  const parts = partsOf(helper, 1)
  t.equal(parts.length, 2)
  t.equal(result.frames, (parts[0]?.frames ?? 0) + (parts[1]?.frames ?? 0))
  for (const part of parts) {
    const { video, audio } = await probe(part.path)
    t.ok(Math.abs((audio?.seconds ?? 0) - video.seconds) <= 0.06)
  }
})

t.test('no next part on a full disk: the recording ends, the parts before are whole', async (t) => {
  const disk = memoryDisk(t, '3m')
  const helper = await startHelper(t)
  await addTestCamera(helper, { width: WIDTH })
  for (const [id, container] of [
    [1, 'avi'],
    [2, 'mp4'],
  ] as const) {
    const encode = { width: WIDTH, height: 360, fps: FPS, bitrate_kbps: 8000 }
    const path = join(disk, `d.${container}`)
    const formats = container === 'avi' ? ({ container, video: 'mjpeg' } as const) : ({ container, audio: null } as const)
    if (container === 'mp4') execFileSync('sh', ['-c', `rm ${disk}/d.*; head -c 2950000 /dev/zero > ${disk}/hog`])
    await helper.call('recorder.start', { id, camera: 0, path, stream: 'stream1', ...formats, encode, part_max_bytes: MiB })
    const ended = await untilEnded(helper, id)
    t.equal(ended.reason, 'disk_full')
    t.ok(ended.message)
    const parts = partsOf(helper, id)
    t.equal(parts.at(-1)?.index, parts.length)
    if (container === 'avi') await checkParts(t, parts.slice(0, -1), false)
  }
})
