import fc from 'fast-check'
import t from 'tap'
import type { CameraView } from '../../../app/server/cameras/index.ts'
import { parseCameraSpec } from '../../../app/server/cameras/index.ts'
import { CONTAINERS, MODES, VIDEO_CODECS } from '../../../app/server/recording/formats.ts'
import { mediaTime, planRecording, UNTOUCHED } from '../../../app/server/recording/plan.ts'

const spec = parseCameraSpec('test:1280x720@30')
const mode = { width: 1280, height: 720, fps: 30 }
const camera: CameraView = {
  id: 0,
  spec,
  settings: { ...mode, brightness: 50, contrast: 50, saturation: 50, audio_codec: 'aac', enabled: true },
  connected: true,
  state: 'streaming',
  reason: null,
  device: 'test:1280x720@30',
  mode,
  format: 'I420',
  audio: null,
}
const now = new Date(2026, 0, 2, 3, 4, 5)

t.test('nothing asked for: the main stream, until stopped, an hour estimated', async (t) => {
  const plan = planRecording({}, camera, now)
  t.match(plan, { stem: 'recording_20260102_030405', durationMs: 0, bitrateKbps: 4000 })
  t.notOk(plan.encode, 'no second encoder')
  t.equal(plan.estimatedBytes, (4_000_000 / 8) * 3600)
})

t.test('what differs from the main stream gets an encoder of its own', async (t) => {
  t.same(planRecording({ resolution: '640x360', fps: 15, bitrate: 800_000, duration: 10 }, camera, now).encode, {
    width: 640,
    height: 360,
    fps: 15,
    bitrate_kbps: 800,
  })
  t.equal(planRecording({ quality: 'low', duration: 10 }, camera, now).estimatedBytes, 1_250_000)
})

for (const [request, code, details] of [
  [{ mode: 'hologram' }, 'UNSUPPORTED_SETTING', 'mode'],
  [{ format: 'mkv' }, 'INVALID_FORMAT', 'format'],
  [{ filename: 'x.mkv' }, 'INVALID_FORMAT', 'format'],
  [{ format: 'avi', video_codec: 'h265' }, 'INVALID_FORMAT', 'video_codec'],
  [{ video_codec: 'mjpeg' }, 'INVALID_FORMAT', 'video_codec'],
  [{ audio_codec: 'pcm' }, 'INVALID_FORMAT', 'audio_codec'],
  [{ format: 'avi', audio_codec: 'aac' }, 'INVALID_FORMAT', 'audio_codec'],
  [{ audio_codec: 'mp3' }, 'UNSUPPORTED_SETTING', 'includeAudio'],
  [{ mode: 'timelapse', includeAudio: true }, 'UNSUPPORTED_SETTING', 'includeAudio'],
  [{ mode: 'slowmotion', fps: 30 }, 'UNSUPPORTED_SETTING', 'fps'],
  [{ mode: 'slowmotion', fps: 241 }, 'UNSUPPORTED_SETTING', 'fps'],
  [{ mode: 'timelapse', pre_roll: true }, 'UNSUPPORTED_SETTING', 'pre_roll'],
  [{ quality: 'low', pre_roll: true }, 'UNSUPPORTED_SETTING', 'pre_roll'],
  [{ includeAudio: true }, 'UNSUPPORTED_SETTING', 'includeAudio'],
  [{ filename: '../..' }, 'INVALID_REQUEST', 'body.filename'],
  [{ resolution: '1920x1080' }, 'INVALID_RESOLUTION', 'resolution'],
  [{ resolution: 'big' }, 'INVALID_RESOLUTION', 'resolution'],
  [{ fps: 60 }, 'UNSUPPORTED_SETTING', 'fps'],
  [{ bitrate: 1000 }, 'UNSUPPORTED_SETTING', 'bitrate'],
] as const) {
  t.test(`${JSON.stringify(request)} is ${code}`, async (t) => {
    t.throws(() => planRecording(request, camera, now), { code, details })
  })
}

t.test('only the endings of video files name a format', async (t) => {
  const formats = (filename: string) => {
    const { stem, container } = planRecording({ filename }, camera, now)
    return [stem, container]
  }
  t.same(formats('visit.2024'), ['visit.2024', 'mp4'])
  t.same(formats('visit.AVI'), ['visit', 'avi'])
  t.same(formats('visit.2024.avi'), ['visit.2024', 'avi'])
  t.same(formats('visit.part2'), ['visit_part2', 'mp4'])
})

t.test('without a picture nothing starts', async (t) => {
  t.throws(() => planRecording({}, { ...camera, connected: false, mode: null }, now), { code: 'CAMERA_NOT_CONNECTED' })
})

t.test('a timelapse is counted in pictures: an hour at 5 s plays for 24 s', async (t) => {
  const plan = planRecording({ mode: 'timelapse' }, camera, now)
  t.match(plan, { kind: 'timelapse', durationMs: 3_600_000, timelapse: { interval_ms: 5000, playback_fps: 30 }, audio: null })
  t.equal(plan.estimatedBytes, (plan.bitrateKbps * 1000 * 24) / 8)
  t.equal(mediaTime(plan, 3_600_000), 24_000)
  t.notOk(plan.captureFps)
  t.match(planRecording({ mode: 'timelapse', interval_ms: 100, duration: 10 }, camera, now), {
    durationMs: 10_000,
    timelapse: { interval_ms: 100 },
  })
  t.equal(planRecording({ mode: 'timelapse', duration: 0 }, camera, now).durationMs, 0, 'until stopped')
})

t.test('slow motion asks the camera for its rate, and only for one that it is known to deliver', async (t) => {
  const plan = planRecording({ mode: 'slowmotion' }, camera, now)
  t.match(plan, { captureFps: 120, encode: { fps: 120 }, mode: { fps: 30 }, slowMotion: { playback_fps: 30 } })
  t.equal(mediaTime(plan, 1000), 4000)
  const short = planRecording({ mode: 'slowmotion', duration: 10, bitrate: 1_000_000 }, camera, now)
  t.equal(short.estimatedBytes, (1_000_000 * 40) / 8, 'the bitrate is of the file as it is played')
  const device = { ...camera, spec: parseCameraSpec('v4l2:/dev/video0@1280x720@60') }
  t.throws(() => planRecording({ mode: 'slowmotion' }, device, now), { code: 'UNSUPPORTED_SETTING', details: 'fps' })
  t.match(planRecording({ mode: 'slowmotion', fps: 60 }, device, now), { captureFps: 60 })
})

t.test('what the user has set holds for what a request leaves open', async (t) => {
  const set = {
    mode: 'timelapse',
    video: { resolution: '640x360', fps: 15, bitrate: 700_000, format: 'avi' },
    timelapse: { ...UNTOUCHED.timelapse, interval: 250, resolution: '320x180', format: 'avi' },
    slowmotion: { ...UNTOUCHED.slowmotion, captureFps: 90, playbackFps: 15, bitrate: 2_000_000 },
  }
  t.match(planRecording({}, camera, now, set), {
    kind: 'timelapse',
    container: 'avi',
    mode: { width: 320 },
    timelapse: { interval_ms: 250 },
  })
  t.match(planRecording({ mode: 'video' }, camera, now, set), {
    mode: { width: 640, height: 360, fps: 15 },
    bitrateKbps: 700,
    container: 'avi',
  })
  t.match(planRecording({ mode: 'slowmotion' }, camera, now, set), {
    encode: { fps: 90, bitrate_kbps: 2000 },
    mode: { fps: 15 },
    container: 'mp4',
  })
  const large = { ...set, video: { resolution: '3840x2160', fps: 60 } }
  t.match(planRecording({ mode: 'video' }, camera, now, large), { mode: spec.mode }, 'as far as the camera delivers it')
})

t.test('sound comes where there is a source, unless it is not wanted', async (t) => {
  const loud = { ...camera, audio: { source: 'test', device: null } } as const
  t.equal(planRecording({}, loud, now).audio, 'aac')
  t.equal(planRecording({ format: 'avi' }, loud, now).audio, 'pcm')
  t.equal(planRecording({ audio_codec: 'mp3' }, loud, now).audio, 'mp3')
  t.equal(planRecording({ includeAudio: false }, loud, now).audio, null)
  t.equal(planRecording({}, loud, now, { ...UNTOUCHED, video: { audio: false } }).audio, null)
  t.equal(planRecording({ mode: 'slowmotion' }, loud, now).audio, null)
  t.equal(planRecording({}, camera, now).audio, null)
})

t.test('the name of a part is no name of a recording', async (t) => {
  t.equal(planRecording({ filename: 'walk.part2.mp4' }, camera, now).stem, 'walk_part2')
})

t.test('whatever is asked for, the plan is one that the helper takes, or the refusal names a field', async () => {
  fc.assert(
    fc.property(
      fc.record(
        {
          mode: fc.constantFrom(...MODES),
          format: fc.constantFrom(...CONTAINERS),
          video_codec: fc.constantFrom(...VIDEO_CODECS),
          audio_codec: fc.constantFrom('aac', 'mp3', 'pcm'),
          includeAudio: fc.boolean(),
          fps: fc.integer({ min: 1, max: 240 }),
          bitrate: fc.integer({ min: 1, max: 1_000_000_000 }),
          duration: fc.integer({ min: 0, max: 100_000 }),
          resolution: fc.constantFrom('1280x720', '640x360', '1920x1080', 'x'),
          interval_ms: fc.integer({ min: 100, max: 86_400_000 }),
        },
        { requiredKeys: [] },
      ),
      (request) => {
        try {
          const plan = planRecording(request, camera, now)
          const timed = plan.kind !== 'video'
          return (
            !(plan.container === 'mp4' && plan.video === 'mjpeg') &&
            !(plan.container === 'avi' && plan.video === 'h265') &&
            plan.audio === null &&
            (!timed || plan.encode !== undefined) &&
            (plan.encode === undefined || (plan.encode.bitrate_kbps >= 64 && plan.encode.fps <= 240)) &&
            Number.isSafeInteger(plan.estimatedBytes)
          )
        } catch (error) {
          return (error as { details?: string }).details !== ''
        }
      },
    ),
    { numRuns: 2000 },
  )
})
