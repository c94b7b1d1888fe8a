/** Recording control, in both variants of the specification. */
import { type Static, Type } from '@sinclair/typebox'
import type { Cameras } from '../cameras/index.ts'
import { type Route, route } from '../http/index.ts'
import { RECORDING_STATES, type Recorder, type RecordingRequest } from '../recording/index.ts'
import { allowedCamera } from './access.ts'
import { CameraId, closed, Enum, Nullable, RecordingQuality, Resolution } from './schemas.ts'

const Fps = Type.Integer({ minimum: 1, maximum: 240 })
const Id = Type.String({ description: 'decimal number' })

/** The keys of both variants; any of `mode`, `fps`, `bitrate`, `includeAudio`, `format` makes it variant B. */
const StartBody = Type.Object(
  {
    filename: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    duration: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_147_483, description: 'seconds; 0: until stopped' })),
    quality: Type.Optional(RecordingQuality),
    resolution: Type.Optional(Resolution),
    framerate: Type.Optional(Fps),
    mode: Type.Optional(Enum(['video', 'timelapse', 'slowmotion'])),
    fps: Type.Optional(Fps),
    bitrate: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000, description: 'bits per second' })),
    includeAudio: Type.Optional(Type.Boolean()),
    format: Type.Optional(Enum(['mp4', 'avi'])),
    camera: Type.Optional(CameraId),
  },
  closed,
)

const StartResult = Type.Union([
  Type.Object(
    {
      success: Type.Boolean(),
      recording_id: Id,
      filename: Type.String(),
      estimated_size: Type.Integer({ description: 'bytes' }),
    },
    { title: 'Variant A' },
  ),
  Type.Object(
    { success: Type.Boolean(), recordingId: Type.Integer(), filename: Type.String(), estimatedSize: Type.Integer() },
    { title: 'Variant B' },
  ),
])

const StopResult = Type.Union([
  Type.Object(
    {
      success: Type.Boolean(),
      recording_id: Id,
      filename: Type.String(),
      duration: Type.Integer({ description: 'seconds' }),
      file_size: Type.Integer(),
    },
    { title: 'Variant A' },
  ),
  Type.Object(
    {
      success: Type.Boolean(),
      recordingId: Type.Integer(),
      duration: Type.Integer({ description: 'milliseconds' }),
      size: Type.Integer(),
      path: Type.String(),
    },
    { title: 'Variant B' },
  ),
])

const Status = Type.Object({
  recording: Type.Boolean(),
  state: Enum(RECORDING_STATES),
  camera: Type.Integer(),
  recording_id: Nullable(Id),
  filename: Nullable(Type.String()),
  duration: Type.Integer({ description: 'seconds' }),
  estimated_size: Nullable(Type.Integer({ description: 'bytes' })),
  remaining_space: Nullable(Type.Integer({ description: 'bytes' })),
  last_end: Nullable(Type.Object({ reason: Type.String(), timestamp: Type.String() })),
})

const VARIANT_B = ['mode', 'fps', 'bitrate', 'includeAudio', 'format'] as const

export function recordingRoutes(recorder: Recorder, cameras: Cameras): Route[] {
  return [
    route({
      method: 'POST',
      path: '/api/recording/start',
      access: 'operator',
      rate: 'api',
      tag: 'Recording',
      summary: 'Start a recording',
      body: StartBody,
      bodyOptional: true,
      response: StartResult,
      errors: [
        'RECORDING_IN_PROGRESS',
        'INSUFFICIENT_STORAGE',
        'CAMERA_NOT_CONNECTED',
        'INVALID_RESOLUTION',
        'INVALID_FORMAT',
        'UNSUPPORTED_SETTING',
        'NOT_FOUND',
      ],
      handler: async ({ body, caller }) => {
        const camera = allowedCamera(caller, body.camera, cameras.active)
        const { row, estimatedBytes } = await recorder.startRecording(requestOf({ ...body, camera }))
        return VARIANT_B.some((key) => key in body)
          ? { success: true, recordingId: row.id, filename: row.filename, estimatedSize: estimatedBytes }
          : { success: true, recording_id: String(row.id), filename: row.filename, estimated_size: estimatedBytes }
      },
    }),
    route({
      method: 'POST',
      path: '/api/recording/stop',
      access: 'operator',
      rate: 'api',
      tag: 'Recording',
      summary: 'Stop the recording and finalise its file',
      description: 'Answers when the file is finalised, whatever `finalize` says: an unfinished file is never left behind.',
      body: Type.Object({ finalize: Type.Optional(Type.Boolean()), camera: Type.Optional(CameraId) }, closed),
      bodyOptional: true,
      response: StopResult,
      errors: ['CONFLICT', 'NOT_FOUND'],
      handler: async ({ body, caller }) => {
        const row = await recorder.stopRecording(allowedCamera(caller, body.camera, cameras.active))
        return 'finalize' in body
          ? { success: true, recordingId: row.id, duration: row.duration, size: row.size, path: row.path }
          : {
              success: true,
              recording_id: String(row.id),
              filename: row.filename,
              duration: Math.round(row.duration / 1000),
              file_size: row.size,
            }
      },
    }),
    route({
      method: 'GET',
      path: '/api/recording/status',
      access: 'viewer',
      rate: 'api',
      tag: 'Recording',
      summary: 'What is being recorded',
      query: Type.Object({ camera: Type.Optional(CameraId) }, closed),
      response: Status,
      errors: ['NOT_FOUND'],
      handler: ({ query, caller }) => statusOf(recorder, allowedCamera(caller, query.camera, cameras.active)),
    }),
  ]
}

function requestOf({ framerate, fps, ...rest }: Static<typeof StartBody>): RecordingRequest {
  const rate = fps ?? framerate
  return rate === undefined ? rest : { ...rest, fps: rate }
}

function statusOf(recorder: Recorder, camera: number | undefined): Static<typeof Status> {
  const status = recorder.status(camera)
  return {
    recording: status.state === 'recording',
    state: status.state,
    camera: status.camera,
    recording_id: status.row ? String(status.row.id) : null,
    filename: status.row?.filename ?? null,
    duration: Math.floor(status.elapsedMs / 1000),
    estimated_size: status.estimatedBytes,
    remaining_space: status.remainingBytes,
    last_end: status.lastEnd,
  }
}
