/** One camera: what it should do, what it does, and how others see it. */
import type { AudioSource, CameraState, Controls, Mode, StreamConfig } from '../media/index.ts'
import { streamsFor } from './quality.ts'
import { type CameraSpec, formatResolution } from './spec.ts'

export const AUDIO_CODECS = ['aac', 'opus', 'pcmu', 'none'] as const

/** What a user has set; survives restarts as long as the camera's spec stays the same. */
export interface CameraSettings extends Mode, Controls {
  /** Of the sound that its streams carry, if the camera has any; `none`: they carry none. */
  readonly audio_codec: (typeof AUDIO_CODECS)[number]
  /** False: stopped by the user, the device is released. */
  readonly enabled: boolean
}

export interface Persisted {
  readonly spec: string
  /** Without those that came in a later version. */
  readonly settings: Partial<CameraSettings>
  /** False: the mode is that of the configuration. Absent: of a release that knew no other than chosen ones. */
  readonly mode_chosen?: boolean
}

/** Pictures that the state interface and the API speak of. */
export interface CameraView {
  readonly id: number
  readonly spec: CameraSpec
  readonly settings: CameraSettings
  readonly connected: boolean
  readonly state: CameraState['state'] | 'stopped'
  readonly reason: string | null
  readonly device: string
  /** What is delivered now; null unless connected. */
  readonly mode: Mode | null
  readonly format: string | null
  /** Where its sound comes from, whether or not that is there now; null: the camera has none. */
  readonly audio: CameraAudio | null
}

export interface CameraAudio {
  readonly source: AudioSource['type']
  /** As ALSA names it; null for the test tone. */
  readonly device: string | null
}

export class Camera {
  live: CameraState | null = null
  /** The end of what `inTurn` does now. */
  turn: Promise<unknown> = Promise.resolve()
  settings: CameraSettings
  /** By a user or by the option; else the configuration's mode holds. */
  modeChosen: boolean
  audio: AudioSource | null = null
  /** Captured at another rate than is set, for slow motion; forgotten when the helper is gone. */
  captureFps: number | null = null

  constructor(
    readonly id: number,
    readonly spec: CameraSpec,
    persisted: Persisted | undefined,
    defaultMode: Mode,
  ) {
    const saved = persisted?.spec === spec.text ? persisted : undefined
    this.modeChosen = spec.mode !== null || (saved !== undefined && saved.mode_chosen !== false)
    const controls = { brightness: 50, contrast: 50, saturation: 50 }
    this.settings = {
      ...defaultMode,
      ...spec.mode,
      ...controls,
      audio_codec: 'aac',
      enabled: true,
      ...saved?.settings,
      ...(this.modeChosen ? {} : defaultMode),
    }
  }

  get mode(): Mode {
    const { width, height, fps } = this.settings
    return { width, height, fps }
  }

  get controls(): Controls {
    const { brightness, contrast, saturation } = this.settings
    return { brightness, contrast, saturation }
  }

  /** As `device` in status: a test picture is visibly marked as one. */
  get device(): string {
    const { source } = this.spec
    if (source.type === 'test') return `test:${formatResolution(this.settings)}@${this.settings.fps}`
    return source.type === 'v4l2' ? source.device : source.path
  }
}

/** Changes of one camera happen one after the other. */
export function inTurn<T>(camera: Camera, work: (camera: Camera) => Promise<T>): Promise<T> {
  const turn = camera.turn.then(() => work(camera))
  camera.turn = turn.catch(() => undefined)
  return turn
}

export function streamsOf({ width, height, fps, audio_codec }: CameraSettings): StreamConfig[] {
  return streamsFor({ width, height, fps }, audio_codec === 'none' ? null : audio_codec)
}

export function view(camera: Camera): CameraView {
  const { id, spec, settings, live, device, audio } = camera
  const connected = settings.enabled && live?.state === 'streaming'
  const { width, height } = live ?? {}
  return {
    id,
    spec,
    settings,
    connected,
    state: settings.enabled ? (live?.state ?? 'starting') : 'stopped',
    reason: live?.reason ?? null,
    device,
    mode: connected && width && height ? { width, height, fps: live?.fps ?? settings.fps } : null,
    format: connected ? (live?.format ?? null) : null,
    audio: audio && { source: audio.type, device: audio.type === 'alsa' ? audio.device : null },
  }
}
