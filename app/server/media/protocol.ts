/** The typed twin of `app/media/PROTOCOL.md`; units stand in the names, as there. */

export type Source =
  | { readonly type: 'test' }
  | { readonly type: 'v4l2'; readonly device: string }
  | { readonly type: 'file'; readonly path: string }

/** What a camera is heard through. */
export type AudioSource = { readonly type: 'test' } | { readonly type: 'alsa'; readonly device: string }

/** What RTSP can send beside the pictures. */
export type StreamAudio = 'aac' | 'opus' | 'pcmu'

export interface Mode {
  readonly width: number
  readonly height: number
  readonly fps: number
}

/** 0 to 100 each; 50 is neutral. */
export interface Controls {
  readonly brightness: number
  readonly contrast: number
  readonly saturation: number
}

export interface StreamConfig extends Mode {
  readonly name: string
  readonly bitrate_kbps: number
  /** Frames from key frame to key frame. */
  readonly gop: number
  /** Null: pictures alone. Without a sound source it means nothing. */
  readonly audio: StreamAudio | null
}

export interface HelperInfo {
  readonly protocol: number
  readonly version: string
  readonly pid: number
  readonly gstreamer: string
  readonly encoders: readonly string[]
  readonly encoder: string
  readonly uptime_ms: number
}

export interface RecorderResult {
  readonly duration_ms: number
  readonly size_bytes: number
  readonly frames: number
}

export interface SnapshotInfo {
  readonly width: number
  readonly height: number
  readonly frame: number
  readonly timestamp_ms: number
  readonly cached: boolean
}

export interface StreamStats extends Mode {
  readonly name: string
  readonly encoder: string | null
  readonly passthrough: boolean
  readonly consumers: number
  readonly frames_encoded: number
  readonly frames_dropped: number
  readonly bytes: number
  readonly bitrate_kbps: number | null
  readonly encode_time_us: number | null
  readonly key_frames_forced: number
  readonly audio: StreamAudio | null
}

export interface AudioStats {
  /** `idle`: nobody listens, so nothing is captured. */
  readonly state: 'idle' | 'starting' | 'streaming' | 'no_signal'
  readonly reason: string | null
  readonly source: 'test' | 'alsa'
  readonly device: string | null
  readonly format: string
  readonly rate: number
  readonly channels: number
  readonly consumers: number
  /** Of the last moment, below full scale; null unless streaming. */
  readonly level_db: number | null
}

export interface CameraStats {
  readonly id: number
  readonly state: CameraSignal
  readonly device: string | null
  readonly width: number | null
  readonly height: number | null
  readonly fps: number | null
  readonly format: string | null
  readonly frames_captured: number
  readonly frames_dropped: number
  readonly reopened: number
  readonly streams: readonly StreamStats[]
  readonly audio: AudioStats | null
}

export type RecordingMode = 'video' | 'timelapse' | 'slow_motion'

export interface RecorderStats extends RecorderResult {
  readonly id: number
  readonly camera: number
  readonly mode: RecordingMode
  readonly paused: boolean
  /** The running part, from 1 on. */
  readonly part: number
  readonly pre_roll_ms: number
  readonly frames_dropped: number
}

export interface ClientStats {
  readonly id: number
  readonly address: string
  readonly user: string | null
  readonly camera: number | null
  readonly stream: string | null
  readonly transport: 'tcp' | 'udp' | null
  readonly connected_ms: number
  readonly bytes: number
  readonly packets: number
  readonly frames_dropped: number
  readonly packets_lost: number | null
  readonly fraction_lost: number | null
  readonly jitter_ms: number | null
}

export interface HelperStats {
  readonly cameras: readonly CameraStats[]
  readonly recorders: readonly RecorderStats[]
  readonly clients: readonly ClientStats[]
  readonly snapshots: { readonly encoded: number; readonly cached: number; readonly refused: number }
}

export interface Encode extends Mode {
  readonly bitrate_kbps: number
}

/** What a recording is made of; PROTOCOL.md says which of them go together. */
export interface RecorderStart {
  readonly id: number
  readonly camera: number
  readonly path: string
  readonly stream: string
  readonly container?: 'mp4' | 'avi'
  readonly video?: 'h264' | 'h265' | 'mjpeg'
  readonly audio?: RecordedAudio | null
  readonly encode?: Encode
  readonly duration_ms?: number
  readonly part_max_bytes?: number
  readonly part_max_ms?: number
  readonly pre_roll_ms?: number
  readonly queue_frames?: number
  readonly timelapse?: { readonly interval_ms: number; readonly playback_fps: number } | null
  readonly slow_motion?: { readonly playback_fps: number } | null
}

export type RecordedAudio = 'aac' | 'mp3' | 'pcm'

/** Who may come in over RTSP: HA1 (RFC 7616) with each hash in hex, and the cameras; null: all of them. */
export interface RtspCredentials {
  readonly name: string
  readonly ha1_md5: string
  readonly ha1_sha256?: string
  readonly cameras: readonly number[] | null
}

export type HelperLogLevel = 'error' | 'warn' | 'info' | 'debug'

/** Every method: what it takes and what it answers. */
export interface Methods {
  'helper.info': { params: Record<string, never>; result: HelperInfo }
  'log.set_level': { params: { level: HelperLogLevel }; result: Record<string, never> }
  'helper.ping': { params: Record<string, never>; result: Record<string, never> }
  'camera.add': {
    params: {
      id: number
      source: Source
      audio: AudioSource | null
      mode: Mode
      controls: Controls
      streams: readonly StreamConfig[]
    }
    result: Record<string, never>
  }
  'camera.configure': {
    params: { id: number; audio?: AudioSource | null; mode?: Mode; streams?: readonly StreamConfig[] }
    result: Record<string, never>
  }
  'camera.set_controls': {
    params: { id: number } & Partial<Controls>
    result: Partial<Record<keyof Controls, 'device' | 'software'>>
  }
  'camera.restart': { params: { id: number }; result: Record<string, never> }
  'camera.remove': { params: { id: number }; result: Record<string, never> }
  'camera.select': { params: { id: number }; result: Record<string, never> }
  'snapshot.take': { params: { camera: number; quality: number }; result: SnapshotInfo }
  'camera.set_buffer': {
    params: { id: number; stream: string; bytes: number; audio?: RecordedAudio | null }
    result: Record<string, never>
  }
  'recorder.start': { params: RecorderStart; result: Mode & { pre_roll_ms: number } }
  'recorder.pause': { params: { id: number }; result: { duration_ms: number } }
  'recorder.resume': { params: { id: number }; result: Record<string, never> }
  'recorder.stop': { params: { id: number }; result: RecorderResult }
  'rtsp.start': {
    params: {
      address: string
      port: number
      tls_port: number
      certificate_file: string
      key_file: string
      max_connections: number
      realm: string
      basic: 'always' | 'tls' | 'never'
    }
    result: { port: number; tls_port: number }
  }
  'rtsp.set_certificate': { params: { certificate_file: string; key_file: string }; result: Record<string, never> }
  'rtsp.set_users': { params: { users: readonly RtspCredentials[] }; result: Record<string, never> }
  'rtsp.set_lockout': { params: { users: readonly string[]; addresses: readonly string[] }; result: Record<string, never> }
  'rtsp.kick': { params: { user?: string; client?: number }; result: { closed: number } }
  'media.export': {
    params: { id: number; parts: readonly { path: string; start_ms: number; end_ms: number | null }[]; path: string }
    result: { duration_ms: number; size_bytes: number }
  }
  'media.cancel': { params: { id: number }; result: Record<string, never> }
  'media.thumbnail': {
    params: { path: string; position_ms: number; width: number; quality: number }
    result: { width: number; height: number; position_ms: number }
  }
  'stats.get': { params: Record<string, never>; result: HelperStats }
}

export type CameraSignal = 'starting' | 'streaming' | 'no_signal'

export interface CameraState {
  readonly id: number
  readonly state: CameraSignal
  readonly reason: string | null
  readonly device: string | null
  readonly width: number | null
  readonly height: number | null
  readonly fps: number | null
  readonly format: string | null
  readonly controls: Partial<Record<keyof Controls, 'device' | 'software'>>
}

export interface RecorderEnded extends RecorderResult {
  readonly id: number
  readonly reason: 'stopped' | 'duration' | 'disk_full' | 'error' | 'camera_removed' | 'shutdown'
  readonly message: string | null
}

/** A recording's first picture is in the file, captured that long ago. */
export interface RecorderBegan {
  readonly id: number
  readonly age_ms: number
}

/** A part of a recording is closed and synced. */
export interface RecorderPart extends RecorderResult {
  readonly id: number
  readonly index: number
  readonly path: string
}

/** Every notification of the helper. */
export interface Notifications {
  'camera.state': CameraState
  'recorder.began': RecorderBegan
  'recorder.part': RecorderPart
  'recorder.ended': RecorderEnded
  'media.progress': { readonly id: number; readonly fraction: number }
  'rtsp.auth_failed': { readonly user: string | null; readonly address: string }
  'rtsp.client': {
    readonly event: 'play' | 'closed' | 'refused'
    readonly id: number
    readonly address: string
    readonly user: string | null
    readonly camera: number | null
    readonly stream: string | null
  }
}

/** What the helper asks us. */
export interface Requests {
  /** The recording that `/recording` means to an RTSP user; null: the newest one. */
  'playback.resolve': {
    params: { recording: string | null; user: string }
    result: { recording: number; camera: number; container: 'mp4' | 'avi'; parts: readonly TimelinePart[] }
  }
}

export type RequestHandlers = {
  [R in keyof Requests]?: (params: Requests[R]['params']) => Requests[R]['result'] | Promise<Requests[R]['result']>
}

export interface TimelinePart {
  readonly path: string
  readonly duration_ms: number
}

export const HELPER_ERROR = {
  method_not_found: -32601,
  internal: -32603,
  invalid_params: -32602,
  not_found: -32001,
  exists: -32002,
  no_signal: -32003,
  unsupported: -32004,
  io: -32005,
  busy: -32006,
} as const

/** The helper refused a request; thrown by a handler of the helper's own requests, it is what the helper hears. */
export class HelperError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data: { readonly field?: string; readonly errno?: string } = {},
  ) {
    super(message)
    this.name = 'HelperError'
  }
}

/** The helper is not there (starting, crashed or hung); the supervisor brings it back. */
export class HelperDown extends Error {
  constructor() {
    super('the media helper is not running')
    this.name = 'HelperDown'
  }
}

/** No answer in time. Whether the helper hangs is for the ping to find out. */
export class HelperTimeout extends Error {
  constructor(method: string) {
    super(`the media helper did not answer ${method} in time`)
    this.name = 'HelperTimeout'
  }
}
