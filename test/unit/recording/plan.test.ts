import t from 'tap'
import type { CameraView } from '../../../app/server/cameras/index.ts'
import { parseCameraSpec } from '../../../app/server/cameras/index.ts'
import { planRecording } from '../../../app/server/recording/plan.ts'

const spec = parseCameraSpec('test:1280x720@30')
const camera: CameraView = {
  id: 0,
  spec,
  settings: { ...spec.mode, brightness: 50, contrast: 50, saturation: 50, audio_codec: 'aac', enabled: true },
  connected: true,
  state: 'streaming',
  reason: null,
  device: 'test:1280x720@30',
  mode: spec.mode,
  format: 'I420',
  audio: { source: 'test', device: null },
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
  [{ mode: 'timelapse' }, 'UNSUPPORTED_SETTING', 'mode'],
  [{ format: 'avi' }, 'INVALID_FORMAT', 'format'],
  [{ filename: 'x.avi' }, 'INVALID_FORMAT', 'format'],
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

t.test('without a picture nothing starts', async (t) => {
  t.throws(() => planRecording({}, { ...camera, connected: false, mode: null }, now), { code: 'CAMERA_NOT_CONNECTED' })
})
