/** Schemas of the state keys: their ranges and permission sets, and the defaults of those that are plain settings. */
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { USUAL_STORAGE } from '../recording/index.ts'
import type { Permission } from './permissions.ts'

export interface KeyRights {
  readonly read: readonly Permission[]
  readonly write: readonly Permission[]
}

export const MEDIA_KEY: KeyRights = { read: ['Media_r', 'Media_rw'], write: ['Media_rw'] }
export const STORAGE_KEY: KeyRights = { read: ['Storage_r', 'Storage_rw'], write: ['Storage_rw'] }

const Percent = Type.Integer({ minimum: 0, maximum: 100 })
const Resolution = Type.String({ pattern: '^[1-9]\\d{1,4}x[1-9]\\d{1,4}$', maxLength: 11 })
const Bitrate = Type.Integer({ minimum: 64_000, maximum: 100_000_000, description: 'bits per second' })
const TimelapseDuration = Type.Integer({ minimum: 1000, maximum: 31_536_000_000, description: 'ms' })
const Container = Type.Union([Type.Literal('mp4'), Type.Literal('avi')])
const DevicePath = Type.String({ pattern: '^(/[^\\0]*)?$', maxLength: 1024 })
const closed = { additionalProperties: false } as const

/** Keys that are shown here and kept elsewhere: nobody writes them through the state. */
export const SHOWN_KEYS = {
  tagCategories: {
    schema: Type.Array(Type.Object({ id: Type.Integer(), name: Type.String(), color: Type.String() })),
    read: MEDIA_KEY.read,
    write: [],
  },
} satisfies Record<string, KeyRights & { schema: TSchema }>

/** Keys that act on the camera or the recorder; their values live there. */
export const ACTING_KEYS = {
  brightness: Percent,
  contrast: Percent,
  saturation: Percent,
  resolution: Resolution,
  fps: Type.Integer({ minimum: 5, maximum: 60 }),
  record: Type.Union([Type.Boolean(), Type.Union(['true', 'false', 'on', 'off'].map((word) => Type.Literal(word)))]),
  snap: Type.Boolean(),
  recordingState: Type.Union(['stopped', 'recording', 'paused'].map((word) => Type.Literal(word))),
  currentRecordingFile: Type.String(),
  'cam1-light': Type.Boolean(),
  light0: Type.Boolean(),
} satisfies Record<string, TSchema>

export type ActingKey = keyof typeof ACTING_KEYS

interface StoredKey extends KeyRights {
  readonly schema: TSchema
  readonly initial: unknown
}

function stored<S extends TSchema>(schema: S, initial: Static<S>, rights: KeyRights = MEDIA_KEY): StoredKey {
  return { schema, initial, ...rights }
}

/** Keys that are plain persisted settings. */
export const STORED_KEYS: Readonly<Record<string, StoredKey>> = {
  recordingMode: stored(Type.Union(['video', 'timelapse', 'slowmotion'].map((word) => Type.Literal(word))), 'video'),
  timelapseInterval: stored(Type.Integer({ minimum: 100, maximum: 86_400_000, description: 'ms' }), 5000),
  timelapseDuration: stored(TimelapseDuration, 3_600_000),
  slowMotionFps: stored(Type.Integer({ minimum: 31, maximum: 240 }), 120),
  recordingBufferSize: stored(Type.Integer({ minimum: 65_536, maximum: 268_435_456, description: 'bytes' }), 4_194_304),
  recordingQueueSize: stored(
    Type.Integer({ minimum: 1, maximum: 300, description: 'frames that may wait for the disk; some seconds always may' }),
    10,
  ),
  recordingStorage: stored(
    Type.Object({ primary: DevicePath, backup: DevicePath, network: Type.String({ maxLength: 1024 }) }, closed),
    USUAL_STORAGE,
    STORAGE_KEY,
  ),
  videoRecordingSettings: stored(
    Type.Object(
      {
        resolution: Resolution,
        fps: Type.Integer({ minimum: 5, maximum: 60 }),
        bitrate: Bitrate,
        audio: Type.Boolean(),
        format: Container,
      },
      closed,
    ),
    { resolution: '1920x1080', fps: 60, bitrate: 8_000_000, audio: true, format: 'mp4' },
  ),
  timelapseSettings: stored(
    Type.Object(
      {
        interval: Type.Integer({ minimum: 100, maximum: 86_400_000 }),
        resolution: Resolution,
        duration: TimelapseDuration,
        format: Container,
      },
      closed,
    ),
    { interval: 5000, resolution: '1920x1080', duration: 3_600_000, format: 'mp4' },
  ),
  slowMotionSettings: stored(
    Type.Object(
      {
        captureFps: Type.Integer({ minimum: 31, maximum: 240 }),
        playbackFps: Type.Integer({ minimum: 1, maximum: 60 }),
        resolution: Resolution,
        bitrate: Bitrate,
        format: Container,
      },
      closed,
    ),
    { captureFps: 120, playbackFps: 30, resolution: '1920x1080', bitrate: 12_000_000, format: 'mp4' },
  ),
}
