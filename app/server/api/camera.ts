/** The live picture and the cameras: stills, status, settings, start and stop. */
import { type Static, Type } from '@sinclair/typebox'
import { seesCamera } from '../caller.ts'
import { AUDIO_CODECS, type Cameras, type CameraView, formatResolution, parseResolution } from '../cameras/index.ts'
import { ApiError } from '../errors.ts'
import { BytesReply, type Caller, type Method, type Route, route } from '../http/index.ts'
import type { CameraStats } from '../media/index.ts'
import type { Recorder } from '../recording/index.ts'
import { DEFAULT_QUALITY, type Snapshots } from '../snapshots/index.ts'
import { allowedCamera, required } from './access.ts'
import { CameraId, closed, ImageQuality, Nullable, Resolution, Success } from './schemas.ts'

const Percent = Type.Integer({ minimum: 0, maximum: 100 })
const Fps = Type.Integer({ minimum: 5, maximum: 60 })

const AudioCodec = Type.Union(
  AUDIO_CODECS.map((codec) => Type.Literal(codec)),
  { description: 'of the sound in the live streams; `none`: they have none' },
)

const Audio = Type.Object({
  source: Type.String({ description: '`test` (a tone) or `alsa`' }),
  device: Nullable(Type.String({ description: 'as ALSA names it' })),
})

const CameraStatus = Type.Object({
  cameras: Type.Array(
    Type.Object({
      id: Type.Integer(),
      connected: Type.Boolean(),
      state: Type.String({ description: '`starting`, `streaming`, `no_signal` or `stopped`' }),
      reason: Nullable(Type.String()),
      device: Type.String(),
      resolution: Type.Optional(Type.String()),
      framerate: Type.Optional(Type.Integer()),
      format: Type.Optional(Type.String()),
      audio: Nullable(Audio),
    }),
  ),
  active_camera: Type.Integer(),
  streaming: Type.Boolean({ description: 'the active camera delivers pictures' }),
})

const CameraSettings = Type.Object({
  camera: Type.Integer(),
  enabled: Type.Boolean(),
  resolution: Type.String(),
  fps: Type.Integer(),
  brightness: Percent,
  contrast: Percent,
  saturation: Percent,
  audio_codec: AudioCodec,
})

const SnapshotBody = Type.Object(
  {
    filename: Type.Optional(Type.String({ maxLength: 255, description: '`snapshot_<yyyyMMdd>_<HHmmss>` when absent' })),
    quality: Type.Optional(ImageQuality),
    addTimestamp: Type.Optional(Type.Boolean({ default: false })),
    camera: Type.Optional(CameraId),
  },
  closed,
)

const SettingsBody = Type.Object(
  {
    camera: Type.Optional(CameraId),
    resolution: Type.Optional(Resolution),
    fps: Type.Optional(Fps),
    brightness: Type.Optional(Percent),
    contrast: Type.Optional(Percent),
    saturation: Type.Optional(Percent),
    audio_codec: Type.Optional(AudioCodec),
  },
  { ...closed, minProperties: 1 },
)

const AudioInfo = Type.Intersect([
  Audio,
  Type.Object({
    state: Type.String({
      description: '`idle` (nobody listens, so nothing is captured), `starting`, `streaming`, `no_signal` or `stopped`',
    }),
    reason: Nullable(Type.String()),
    level_db: Nullable(Type.Number({ description: 'of the last moment, below full scale' })),
  }),
])

const Stats = Type.Object({}, { additionalProperties: true })

export function cameraRoutes(cameras: Cameras, recorder: Recorder, snapshots: Snapshots): Route[] {
  const image = (path: string) =>
    route({
      method: 'GET',
      path,
      access: 'guest',
      rate: 'image',
      tag: 'Camera and image',
      summary: 'The newest picture as JPEG',
      share: 'still',
      query: Type.Object({ quality: Type.Optional(ImageQuality), camera: Type.Optional(CameraId) }, closed),
      response: { binary: 'image/jpeg' },
      errors: ['CAMERA_NOT_CONNECTED', 'NOT_FOUND'],
      handler: async ({ query, caller }) => {
        const camera = allowedCamera(caller, query.camera, cameras.active)
        const still = await cameras.still(camera, query.quality ?? DEFAULT_QUALITY)
        return new BytesReply(still.jpeg, 'image/jpeg', { 'Last-Modified': new Date(still.timestampMs).toUTCString() })
      },
    })

  const snapshot = (method: Method, path: string) =>
    route({
      method,
      path,
      access: 'operator',
      rate: 'image',
      tag: 'Camera and image',
      summary: 'Take a still and keep it on the device storage',
      body: SnapshotBody,
      bodyOptional: true,
      response: Type.Object({
        success: Type.Boolean(),
        filename: Type.String(),
        path: Type.String(),
        size: Type.Integer({ description: 'bytes' }),
        timestamp: Type.String(),
      }),
      errors: ['CAMERA_NOT_CONNECTED', 'INSUFFICIENT_STORAGE', 'INVALID_FORMAT', 'NOT_FOUND'],
      handler: async ({ body, caller }) => {
        const camera = allowedCamera(caller, body.camera, cameras.active)
        return { success: true, ...(await snapshots.take({ ...body, camera })) }
      },
    })

  const toggle = (path: string, enabled: boolean) =>
    route({
      method: 'POST',
      path,
      access: 'operator',
      rate: 'api',
      tag: 'Camera and image',
      summary: enabled ? 'Start streaming' : 'Stop streaming: release the device and disconnect its clients',
      body: Type.Object({ camera: Type.Optional(CameraId) }, closed),
      bodyOptional: true,
      response: Type.Object({ success: Type.Boolean(), camera: Type.Integer(), streaming: Type.Boolean() }),
      errors: ['RECORDING_IN_PROGRESS', 'CAMERA_NOT_CONNECTED', 'NOT_FOUND'],
      handler: async ({ body, caller }) => {
        const { id } = cameras.view(allowedCamera(caller, body.camera, cameras.active))
        if (enabled) await cameras.setEnabled(id, true)
        else await unlessRecording(recorder, id, () => cameras.setEnabled(id, false))
        return { success: true, camera: id, streaming: enabled }
      },
    })

  return [
    image('/camera.jpeg'),
    image('/image'),
    image('/api/snapshot'),
    snapshot('POST', '/snapshot'),
    snapshot('POST', '/api/camera/snapshot'),
    toggle('/api/camera/start', true),
    toggle('/api/camera/stop', false),
    route({
      method: 'GET',
      path: '/api/camera/status',
      access: 'guest',
      rate: 'api',
      tag: 'Camera and image',
      summary: 'State of every camera',
      response: CameraStatus,
      handler: ({ caller }) => cameraStatus(cameras, required(caller)),
    }),
    route({
      method: 'GET',
      path: '/api/camera/info',
      access: 'viewer',
      rate: 'api',
      tag: 'Camera and image',
      summary: 'One camera with its counters',
      query: Type.Object({ camera: Type.Optional(CameraId) }, closed),
      response: Type.Object({
        id: Type.Integer(),
        device: Type.String(),
        type: Type.String({ description: '`test`, `v4l2` or `file`' }),
        connected: Type.Boolean(),
        audio: Nullable(AudioInfo),
        settings: CameraSettings,
        stats: Nullable(Stats),
      }),
      errors: ['NOT_FOUND'],
      handler: async ({ query, caller }) => {
        const view = cameras.view(allowedCamera(caller, query.camera, cameras.active))
        const { id, device, connected, spec } = view
        const stats = view.settings.enabled ? await cameras.statsOf(id) : null
        return { id, device, type: spec.source.type, connected, audio: audioInfo(view, stats), settings: settingsOf(view), stats }
      },
    }),
    route({
      method: 'GET',
      path: '/api/camera/settings',
      access: 'viewer',
      rate: 'api',
      tag: 'Camera and image',
      summary: 'Mode and picture controls of a camera',
      query: Type.Object({ camera: Type.Optional(CameraId) }, closed),
      response: CameraSettings,
      errors: ['NOT_FOUND'],
      handler: ({ query, caller }) => settingsOf(cameras.view(allowedCamera(caller, query.camera, cameras.active))),
    }),
    route({
      method: 'PUT',
      path: '/api/camera/settings',
      access: 'operator',
      rate: 'api',
      tag: 'Camera and image',
      summary: 'Change mode and picture controls; connected clients stay',
      body: SettingsBody,
      response: Type.Intersect([Success, CameraSettings]),
      errors: ['INVALID_RESOLUTION', 'RECORDING_IN_PROGRESS', 'CAMERA_NOT_CONNECTED', 'UNSUPPORTED_SETTING', 'NOT_FOUND'],
      handler: async ({ body, caller }) => {
        const { id } = cameras.view(allowedCamera(caller, body.camera, cameras.active))
        const change = settingsChange(body)
        const configure = () => cameras.configure(id, change)
        await ('width' in change || 'fps' in change ? unlessRecording(recorder, id, configure) : configure())
        return { success: true, ...settingsOf(cameras.view(id)) }
      },
    }),
  ]
}

async function unlessRecording(recorder: Recorder, camera: number, change: () => Promise<void>): Promise<void> {
  if (recorder.isRecording(camera)) {
    throw new ApiError('RECORDING_IN_PROGRESS', 'This cannot change during a recording', `camera ${camera}`)
  }
  await recorder.holdStarts(change)
}

function settingsChange(body: Static<typeof SettingsBody>) {
  const { camera: _camera, resolution, ...rest } = body
  if (resolution === undefined) return rest
  const size = parseResolution(resolution)
  if (!size) throw new ApiError('INVALID_RESOLUTION', 'The resolution must be WIDTHxHEIGHT with even sides', 'body.resolution')
  return { ...rest, ...size }
}

function audioInfo({ audio }: CameraView, stats: CameraStats | null): Static<typeof AudioInfo> | null {
  if (!audio) return null
  const { state = 'stopped', reason = null, level_db = null } = stats?.audio ?? {}
  return { ...audio, state, reason, level_db }
}

function settingsOf({ id, settings }: CameraView): Static<typeof CameraSettings> {
  const { enabled, fps, brightness, contrast, saturation, audio_codec } = settings
  return { camera: id, enabled, resolution: formatResolution(settings), fps, brightness, contrast, saturation, audio_codec }
}

function cameraStatus(cameras: Cameras, caller: Caller): Static<typeof CameraStatus> {
  const seen = cameras.list().filter(({ id }) => seesCamera(caller, id))
  const list = seen.map(({ id, connected, state, reason, device, mode, format, audio }) => ({
    id,
    connected,
    state,
    reason,
    device,
    audio,
    ...(mode ? { resolution: formatResolution(mode), framerate: mode.fps, format: format ?? 'unknown' } : {}),
  }))
  return { cameras: list, active_camera: cameras.active, streaming: cameras.view().connected }
}
