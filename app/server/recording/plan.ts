/** From a request to what will be recorded: all checks of the request itself, before anything acts. Pure. */
import { bitrateFor, type CameraView, parseResolution, type Quality } from '../cameras/index.ts'
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
export function planRecording(request: RecordingRequest, camera: CameraView, now: Date): RecordingPlan {
  if (request.mode !== undefined && request.mode !== 'video') {
    throw new UnsupportedSetting('mode', `This camera cannot record in mode ${request.mode}`)
  }
  const extension = /\.([A-Za-z0-9]{1,5})$/.exec(request.filename ?? '')?.[1]?.toLowerCase()
  const format = request.format ?? extension ?? 'mp4'
  if (format !== 'mp4') throw new ApiError('INVALID_FORMAT', `Recording as ${format} is not supported`, 'format')
  if (request.includeAudio) throw new UnsupportedSetting('includeAudio', 'This camera has no audio source')
  const stem = request.filename === undefined ? `recording_${timeStem(now)}` : sanitiseStem(request.filename)
  if (stem === null) throw new ApiError('INVALID_REQUEST', 'The filename has no usable character', 'body.filename')
  if (!camera.mode) throw new CameraNotConnected(camera.id)

  const native = camera.mode
  const mode = recordingMode(request, native)
  const usual = bitrateFor(native, 'high')
  const bitrateKbps =
    request.bitrate === undefined ? bitrateFor(mode, request.quality ?? 'high') : Math.round(request.bitrate / 1000)
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

/** What was asked for, within what the camera delivers now. */
function recordingMode({ resolution, fps }: RecordingRequest, native: Mode): Mode {
  const size = resolution === undefined ? native : parseResolution(resolution)
  if (!size) throw new ApiError('INVALID_RESOLUTION', 'The resolution must be WIDTHxHEIGHT with even sides', 'resolution')
  if (size.width > native.width || size.height > native.height) {
    const now = `${native.width}x${native.height}`
    throw new ApiError('INVALID_RESOLUTION', `The camera delivers ${now}; set its resolution first to record more`, 'resolution')
  }
  if (fps !== undefined && fps > native.fps) {
    throw new UnsupportedSetting('fps', `The camera delivers ${native.fps} frames per second; set its fps first to record more`)
  }
  return { width: size.width, height: size.height, fps: fps ?? native.fps }
}
