import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { HELPER_ERROR, type RecordedAudio, type RecorderStart } from '../../app/server/media/protocol.ts'
import { gaps, readFrameNumbers } from '../support/frames.ts'
import { addTestCamera, type Helper, probe, startHelper, steps, untilEnded } from '../support/helper.ts'
import { beepsAfterFlashes } from '../support/sync.ts'

const FPS = 30
const SECONDS = 3
const WIDTH = 640

type Format = readonly [container: 'mp4' | 'avi', video: 'h264' | 'h265' | 'mjpeg', audio: RecordedAudio | null]

const FORMATS: readonly Format[] = [
  ['mp4', 'h264', null],
  ['mp4', 'h264', 'aac'],
  ['mp4', 'h264', 'mp3'],
  ['mp4', 'h265', null],
  ['mp4', 'h265', 'aac'],
  ['mp4', 'h265', 'mp3'],
  ['avi', 'h264', null],
  ['avi', 'h264', 'pcm'],
  ['avi', 'h264', 'mp3'],
  ['avi', 'mjpeg', null],
  ['avi', 'mjpeg', 'pcm'],
  ['avi', 'mjpeg', 'mp3'],
]
/** Seconds. A picture is up to 33 ms later than its moment, a unit of sound up to half its length off; of MP3 in AVI the times that are read are
 * moreover those of whole units, 24 ms each. */
const apart = ([container, , audio]: Format) => (container === 'avi' && audio === 'mp3' ? 0.08 : 0.06)
const PROBED: Record<string, string> = { h264: 'h264', h265: 'hevc', mjpeg: 'mjpeg', aac: 'aac', mp3: 'mp3', pcm: 'pcm_s16le' }
const TAGS: Record<string, string> = { mp4h264: 'avc1', mp4h265: 'hvc1', avih264: 'H264', avimjpeg: 'MJPG' }

function start(helper: Helper, id: number, [container, video, audio]: Format, more: Partial<RecorderStart> = {}) {
  const path = join(helper.folder, `${id}.${container}`)
  return {
    path,
    started: helper.call('recorder.start', { id, camera: 0, path, stream: 'stream1', container, video, audio, ...more }),
  }
}

t.test('every container with every codec that goes into it', async (t) => {
  const helper = await startHelper(t)
  await addTestCamera(helper, { audio: true, width: WIDTH })
  for (const [id, format] of FORMATS.entries()) {
    await t.test(format.join(' '), async (t) => {
      const [container, video, audio] = format
      const { path, started } = start(helper, id, format, { duration_ms: SECONDS * 1000 })
      t.same(await started, { width: WIDTH, height: 360, fps: FPS, pre_roll_ms: 0 })
      t.match(await untilEnded(helper, id), { reason: 'duration', duration_ms: SECONDS * 1000, frames: SECONDS * FPS })
      const probed = await probe(path)
      t.match(probed.format, container)
      t.match(probed.video, {
        codec_name: PROBED[video],
        codec_tag_string: TAGS[container + video],
        width: WIDTH,
        r_frame_rate: `${FPS}/1`,
        packets: SECONDS * FPS,
      })
      t.ok(Math.abs(probed.video.seconds - SECONDS) < 0.002, `${probed.video.seconds} s`)
      t.same(gaps(await readFrameNumbers({ input: path, captured: WIDTH })), [])
      t.equal(probed.audio?.codec_name, audio ? PROBED[audio] : undefined)
      if (!probed.audio) return
      t.ok(Math.abs(probed.audio.seconds - SECONDS) < 0.03, `${probed.audio.seconds} s of sound`)
      const offsets = await beepsAfterFlashes(path, WIDTH)
      t.ok(offsets.length >= 2, `${offsets.length} beeps`)
      t.ok(
        offsets.every((offset) => Math.abs(offset) < apart(format)),
        `beeps after flashes: ${offsets.map((offset) => Math.round(offset * 1000)).join(', ')} ms`,
      )
    })
  }
})

t.test('the index of an AVI leads to its chunks', async (t) => {
  const helper = await startHelper(t)
  await addTestCamera(helper, { audio: true, width: WIDTH })
  const { path, started } = start(helper, 1, ['avi', 'h264', 'pcm'], { duration_ms: 1000 })
  await started
  await untilEnded(helper, 1)
  const file = readFileSync(path)
  t.equal(file.readUInt32LE(4), file.length - 8)
  const movi = file.indexOf('movi')
  const index = file.lastIndexOf('idx1')
  t.equal(movi + file.readUInt32LE(movi - 4), index)
  const entries = file.readUInt32LE(index + 4) / 16
  t.equal(index + 8 + entries * 16, file.length)
  t.ok(entries > FPS)
  for (let i = 0; i < entries; i++) {
    const entry = index + 8 + i * 16
    const chunk = movi + file.readUInt32LE(entry + 8)
    t.equal(file.toString('latin1', chunk, chunk + 4), file.toString('latin1', entry, entry + 4))
    t.equal(file.readUInt32LE(chunk + 4), file.readUInt32LE(entry + 12))
  }
})

t.test('what does not go together is refused before a file is made', async (t) => {
  const helper = await startHelper(t)
  await addTestCamera(helper)
  const refused = async (format: Format, more: Partial<RecorderStart> = {}) => {
    const { path, started } = start(helper, 1, format, more)
    const error = await started.then(
      () => null,
      (error) => error,
    )
    t.throws(() => readFileSync(path), { code: 'ENOENT' })
    return error
  }
  t.match(await refused(['mp4', 'mjpeg', null]), { code: HELPER_ERROR.invalid_params, data: { field: 'video' } })
  t.match(await refused(['avi', 'h265', null]), { code: HELPER_ERROR.invalid_params, data: { field: 'video' } })
  t.match(await refused(['mp4', 'h264', 'pcm']), { code: HELPER_ERROR.invalid_params, data: { field: 'audio' } })
  t.match(await refused(['avi', 'h264', 'aac']), { code: HELPER_ERROR.invalid_params, data: { field: 'audio' } })
  t.match(await refused(['mp4', 'h264', 'aac']), { code: HELPER_ERROR.unsupported }, 'the camera has no sound')
  const timelapse = { interval_ms: 100, playback_fps: 30 }
  t.match(await refused(['mp4', 'h264', 'aac'], { timelapse }), { data: { field: 'audio' } })
  t.match(await refused(['mp4', 'h264', null], { timelapse, slow_motion: { playback_fps: 30 } }), {
    data: { field: 'slow_motion' },
  })
})

t.test('a picture that is missing does not shift the rest', async (t) => {
  const helper = await startHelper(t)
  await addTestCamera(helper, { audio: true, width: WIDTH, fps: 10 })
  // The file is said to have three times the pictures that the camera delivers.
  const encode = { width: WIDTH, height: 360, fps: FPS, bitrate_kbps: 1000 }
  const { path, started } = start(helper, 1, ['avi', 'h264', 'pcm'], { encode, duration_ms: 3000 })
  await started
  await untilEnded(helper, 1)
  const { video, audio } = await probe(path)
  t.equal(video.packets, 30)
  t.ok(steps(video.times).every((step) => Math.abs(step - 100) < 1))
  t.ok(Math.abs((audio?.seconds ?? 0) - 3) < 0.1)
})
