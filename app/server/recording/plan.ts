/** From a request to what will be recorded: all checks of the request itself, before anything acts. Pure. */
import { bitrateFor, type CameraView, parseResolution, type Quality, type Size } from '../cameras/index.ts'
import { ApiError, CameraNotConnected, UnsupportedSetting } from '../errors.ts'
import { sanitiseStem, timeStem } from '../files/index.ts'
import type { Encode, Mode } from '../media/index.ts'

export interface RecordingRequest {
  readonly camera?: number
  readonly filename?: string
  /** Seconds; 0 or absent: until stopped. */
  readonly duration?: number
  readonly quality?: Quality
  readonly resolution?: string
  readonly fps?: number
  /** Bits per second, as the state key `videoRecordingSettings` has it. */
  readonly bitrate?: number
  readonly includeAudio?: boolean
  readonly format?: string
  readonly mode?: string
}

/** The user's settings, for what a request leaves open. Limited to what the camera delivers; absent: as the main stream. */
export interface RecordingDefaults {
  readonly mode?: string
  readonly resolution?: string
  readonly fps?: number
  readonly bitrate?: number
  readonly format?: string
}

export interface RecordingPlan {
  readonly camera: number
  readonly stem: string
  readonly mode: Mode
  readonly bitrateKbps: number
  /** Present when the recording differs from `stream1` and needs an encoder of its own. */
  readonly encode?: Encode
  /** 0: until stopped. */
  readonly durationMs: number
  readonly estimatedBytes: number
}

/** Without a duration, an hour is estimated. */
const ESTIMATED_SECONDS = 3600
const MIN_KBPS = 64
const MAX_KBPS = 100_000

/** Throws the `ApiError` that names what cannot be done. */
export function planRecording(
  request: RecordingRequest,
  camera: CameraView,
  now: Date,
  defaults: RecordingDefaults = {},
): RecordingPlan {
  const kind = request.mode ?? defaults.mode ?? 'video'
  if (kind !== 'video') throw new UnsupportedSetting('mode', `This camera cannot record in mode ${kind}`)
  const extension = /\.([A-Za-z0-9]{1,5})$/.exec(request.filename ?? '')?.[1]?.toLowerCase()
  const format = request.format ?? extension ?? defaults.format ?? 'mp4'
  if (format !== 'mp4') throw new ApiError('INVALID_FORMAT', `Recording as ${format} is not supported`, 'format')
  if (request.includeAudio) throw new UnsupportedSetting('includeAudio', 'This camera has no audio source')
  const stem = request.filename === undefined ? `recording_${timeStem(now)}` : sanitiseStem(request.filename)
  if (stem === null) throw new ApiError('INVALID_REQUEST', 'The filename has no usable character', 'body.filename')
  if (!camera.mode) throw new CameraNotConnected(camera.id)

  const native = camera.mode
  const mode = recordingMode(request, native, defaults)
  const usual = bitrateFor(native, 'high')
  const bitrate = request.bitrate ?? (request.quality === undefined ? defaults.bitrate : undefined)
  const bitrateKbps = bitrate === undefined ? bitrateFor(mode, request.quality ?? 'high') : Math.round(bitrate / 1000)
  if (bitrateKbps < MIN_KBPS || bitrateKbps > MAX_KBPS) {
    throw new UnsupportedSetting(
      'bitrate',
      `The bitrate must be between ${MIN_KBPS * 1000} and ${MAX_KBPS * 1000} bits per second`,
    )
  }
  const shared = mode.width === native.width && mode.height === native.height && mode.fps === native.fps && bitrateKbps === usual
  const durationMs = (request.duration ?? 0) * 1000
  const seconds = durationMs > 0 ? durationMs / 1000 : ESTIMATED_SECONDS
  return {
    camera: camera.id,
    stem,
    mode,
    bitrateKbps,
    ...(shared ? {} : { encode: { ...mode, bitrate_kbps: bitrateKbps } }),
    durationMs,
    estimatedBytes: Math.round((bitrateKbps * 1000 * seconds) / 8),
  }
}

/** What was asked for, which must be within what the camera delivers now, or what is set, as far as it is. */
function recordingMode({ resolution, fps }: RecordingRequest, native: Mode, defaults: RecordingDefaults): Mode {
  if (fps !== undefined && fps > native.fps) {
    throw new UnsupportedSetting('fps', `The camera delivers ${native.fps} frames per second; set its fps first to record more`)
  }
  const size = resolution === undefined ? defaultSize(native, defaults) : parseResolution(resolution)
  if (!size) throw new ApiError('INVALID_RESOLUTION', 'The resolution must be WIDTHxHEIGHT with even sides', 'resolution')
  if (size.width > native.width || size.height > native.height) {
    const now = `${native.width}x${native.height}`
    throw new ApiError('INVALID_RESOLUTION', `The camera delivers ${now}; set its resolution first to record more`, 'resolution')
  }
  return { width: size.width, height: size.height, fps: fps ?? Math.min(native.fps, defaults.fps ?? native.fps) }
}

function defaultSize(native: Mode, { resolution }: RecordingDefaults): Size {
  const set = resolution === undefined ? null : parseResolution(resolution)
  return set && set.width <= native.width && set.height <= native.height ? set : native
}
