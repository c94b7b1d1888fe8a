/** The shapes of the API that the console reads. */

export type Role = 'guest' | 'viewer' | 'operator' | 'admin'

export interface Login {
  readonly must_change_password: boolean
  readonly user: { readonly username: string; readonly role: Role }
}

export interface CameraEntry {
  readonly id: number
  readonly connected: boolean
  readonly state: 'starting' | 'streaming' | 'no_signal' | 'stopped'
  readonly reason: string | null
  /** `test:…` for the embedded test source. */
  readonly device: string
  readonly resolution?: string
  readonly framerate?: number
  readonly format?: string
}

export interface CameraStatus {
  readonly cameras: readonly CameraEntry[]
  readonly active_camera: number
}

export interface RecordingStatus {
  readonly recording: boolean
  readonly filename: string | null
  /** Seconds. */
  readonly duration: number
  /** Bytes. */
  readonly remaining_space: number
}

export interface Recording {
  readonly id: number
  readonly filename: string
  readonly timestampStartMs: number
  readonly durationMs: number
  /** Bytes. */
  readonly size: number
  readonly resolution: string
  readonly fps: number
  readonly state: 'recording' | 'ready' | 'defect'
}

export interface RecordingPage {
  readonly recordings: readonly Recording[]
  readonly total: number
}

export interface StreamEntry {
  readonly camera: number
  readonly name: string
  /** Below rtsp://<host>:<rtsp_port> */
  readonly path: string
  readonly active: boolean
  readonly resolution: string
  readonly fps: number
  readonly encoder: string | null
  readonly bitrate_kbps: number | null
  readonly frames_dropped: number
  readonly clients: readonly StreamClient[]
}

export interface StreamClient {
  readonly id: number
  readonly address: string
  readonly user: string | null
  readonly transport: string | null
  readonly connected_ms: number
  readonly bytes: number
}

export interface Streams {
  readonly rtsp_port: number
  readonly encoder: string | null
  readonly streams: readonly StreamEntry[]
}

/** Bytes. */
export interface Space {
  readonly total: number
  readonly available: number
  readonly used: number
}

export interface SystemInfo {
  readonly version: string
  /** Seconds. */
  readonly uptime: number
  readonly system: {
    readonly temperature: number | null
    readonly cpu_usage: number | null
    readonly memory: Space | null
    readonly disk: Space
  }
  readonly camera: { readonly connected: boolean; readonly recording: boolean }
  readonly network: { readonly ip: string | null; readonly hostname: string; readonly connected: boolean }
}

export type Check = 'ok' | 'warning' | 'error'

export interface Health {
  readonly status: 'healthy' | 'degraded' | 'unhealthy'
  readonly checks: Readonly<Record<'camera' | 'storage' | 'network', Check>>
}

/** The state keys that the console uses; a key is missing until the server has told it. */
export interface StateKeys {
  readonly brightness?: number
  readonly contrast?: number
  readonly saturation?: number
  readonly resolution?: string
  readonly fps?: number
  readonly record?: boolean
  readonly snap?: boolean
  readonly recordingState?: 'stopped' | 'recording' | 'paused'
  readonly currentRecordingFile?: string
}

export interface ServerEvent {
  readonly category: string
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}
