/** Recording control, in both variants of the specification. */
import { type Static, Type } from '@sinclair/typebox'
import type { Cameras } from '../cameras/index.ts'
import { type Route, route } from '../http/index.ts'
import {
  AUDIO_CODECS,
  CONTAINERS,
  MODES,
  RECORDING_STATES,
  type Recorder,
  type RecordingRequest,
  VIDEO_CODECS,
} from '../recording/index.ts'
import { allowedCamera } from './access.ts'
import { CameraId, closed, Enum, Nullable, RecordingQuality, Resolution } from './schemas.ts'

const Fps = Type.Integer({
  minimum: 1,
  maximum: 240,
  description: 'frames per second; of slow motion the capture rate, of a timelapse the playback rate',
})
const Id = Type.String({ description: 'decimal number' })

/** The keys of both variants; any of `mode`, `fps`, `bitrate`, `includeAudio`, `format` makes it variant B. */
const StartBody = Type.Object(
  {
    filename: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    duration: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_147_483, description: 'seconds; 0: until stopped' })),
    quality: Type.Optional(RecordingQuality),
    resolution: Type.Optional(Resolution),
    framerate: Type.Optional(Fps),
    mode: Type.Optional(Enum(MODES)),
    fps: Type.Optional(Fps),
    bitrate: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000, description: 'bits per second' })),
    includeAudio: Type.Optional(
      Type.Boolean({
        description: 'true is refused without a source; absent: as `videoRecordingSettings.audio`, silent without one',
      }),
    ),
    format: Type.Optional(Enum(CONTAINERS, 'mp4 carries h264 or h265 with aac or mp3, avi h264 or mjpeg with pcm or mp3')),
    video_codec: Type.Optional(Enum(VIDEO_CODECS, 'h264 when absent')),
    audio_codec: Type.Optional(Enum(AUDIO_CODECS, 'aac in mp4, pcm in avi when absent; asks for sound')),
    pre_roll: Type.Optional(Type.Boolean({ description: 'begin with what the buffer keeps of the past' })),
    interval_ms: Type.Optional(
      Type.Integer({ minimum: 100, maximum: 86_400_000, description: 'of a timelapse; `timelapseInterval` when absent' }),
    ),
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
  paused: Type.Boolean(),
  camera: Type.Integer(),
  mode: Nullable(Enum(MODES)),
  recording_id: Nullable(Id),
  filename: Nullable(Type.String({ description: 'of the part that is being written' })),
  part: Type.Integer({ description: 'a long recording goes on in further files' }),
  parts: Type.Array(
    Type.Object({ filename: Type.String(), duration_ms: Type.Integer(), size: Type.Integer({ description: 'bytes' }) }),
    { description: 'the last one is being written: what it holds is told when it is closed' },
  ),
  format: Nullable(Enum(CONTAINERS)),
  video_codec: Nullable(Enum(VIDEO_CODECS)),
  audio_codec: Nullable(Enum(AUDIO_CODECS)),
  trigger: Nullable(Type.String({ description: '`manual`, `schedule`, `motion` or `alert`' })),
  duration: Type.Integer({ description: 'seconds that were recorded, without pauses' }),
  position_ms: Type.Integer({ description: 'how long what is recorded plays' }),
  estimated_size: Nullable(Type.Integer({ description: 'bytes' })),
  remaining_space: Nullable(Type.Integer({ description: 'bytes' })),
  last_end: Nullable(Type.Object({ reason: Type.String(), timestamp: Type.String() })),
})

const VARIANT_B = ['mode', 'fps', 'bitrate', 'includeAudio', 'format'] as const

export function recordingRoutes(recorder: Recorder, cameras: Cameras): Route[] {
  const toggle = (path: string, summary: string, description: string, act: (camera: number) => Promise<unknown>) =>
    route({
      method: 'POST',
      path,
      access: 'operator',
      rate: 'api',
      tag: 'Recording',
      summary,
      description,
      body: Type.Object({ camera: Type.Optional(CameraId) }, closed),
      bodyOptional: true,
      response: Type.Object({ success: Type.Boolean(), recording_id: Nullable(Id), state: Enum(RECORDING_STATES) }),
      errors: ['CONFLICT', 'CAMERA_NOT_CONNECTED', 'INSUFFICIENT_STORAGE', 'NOT_FOUND'],
      handler: async ({ body, caller }) => {
        const camera = allowedCamera(caller, body.camera, cameras.active)
        await act(camera)
        const { state, row } = recorder.status(camera)
        return { success: true, recording_id: row ? String(row.id) : null, state }
      },
    })

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
      description:
        'Answers when the file is finalised, whatever `finalize` says: an unfinished file is never left behind. Refused while paused: resume first.',
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
    toggle('/api/recording/pause', 'Pause the recording', 'The time line of the file has no gap there.', (camera) =>
      recorder.pauseRecording(camera),
    ),
    toggle('/api/recording/resume', 'Go on with a paused recording', 'In the same file.', (camera) =>
      recorder.resumeRecording(camera),
    ),
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
  const { state, row, plan, ...status } = recorder.status(camera)
  return {
    recording: state === 'recording',
    state,
    paused: state === 'paused',
    camera: status.camera,
    mode: plan?.kind ?? null,
    recording_id: row ? String(row.id) : null,
    filename: status.filename ?? row?.filename ?? null,
    part: status.part,
    parts: row ? row.parts.map(({ filename, duration, size }) => ({ filename, duration_ms: duration, size })) : [],
    format: plan?.container ?? null,
    video_codec: plan?.video ?? null,
    audio_codec: plan?.audio ?? null,
    trigger: row?.trigger ?? null,
    duration: Math.floor(status.elapsedMs / 1000),
    position_ms: Math.round(status.positionMs),
    estimated_size: status.estimatedBytes,
    remaining_space: status.remainingBytes,
    last_end: status.lastEnd,
  }
}
