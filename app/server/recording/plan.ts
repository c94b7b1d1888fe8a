/** From a request to what will be recorded: all checks of the request itself, before anything acts. Pure. */
import { bitrateFor, type CameraView, parseResolution, type Quality, type Size } from '../cameras/index.ts'
import { ApiError, CameraNotConnected, UnsupportedSetting } from '../errors.ts'
import { sanitiseStem, timeStem } from '../files/index.ts'
import type { Encode, Mode } from '../media/index.ts'
import { BITRATE_SHARE, chooseFormat, type Format, MODES, type RecordingMode } from './formats.ts'

export interface RecordingRequest {
  readonly camera?: number | undefined
  readonly filename?: string | undefined
  /** Seconds of real time; 0: until stopped. Absent: until stopped, for a timelapse what is set for it. */
  readonly duration?: number | undefined
  readonly quality?: Quality | undefined
  readonly resolution?: string | undefined
  /** Of the video; the capture rate of slow motion, the playback rate of a timelapse. */
  readonly fps?: number | undefined
  /** Bits per second, as the state key `videoRecordingSettings` has it. */
  readonly bitrate?: number | undefined
  readonly includeAudio?: boolean | undefined
  readonly format?: string | undefined
  readonly mode?: string | undefined
  readonly video_codec?: string | undefined
  readonly audio_codec?: string | undefined
  readonly pre_roll?: boolean | undefined
  /** As far as the past is kept, and nothing where it cannot be; from inside. */
  readonly preRollMs?: number | undefined
  /** From picture to picture of a timelapse. */
  readonly interval_ms?: number | undefined
}

/** The user's settings, for what a request leaves open. Pictures are limited to what the camera delivers; absent: as the main stream. */
export interface RecordingDefaults {
  readonly mode?: string | undefined
  readonly video: PictureDefaults & { readonly fps?: number | undefined; readonly audio?: boolean | undefined }
  readonly timelapse: PictureDefaults & { readonly interval: number; readonly duration: number }
  readonly slowmotion: PictureDefaults & { readonly captureFps: number; readonly playbackFps: number }
}

interface PictureDefaults {
  readonly resolution?: string | undefined
  readonly bitrate?: number | undefined
  readonly format?: string | undefined
}

/** The specification's values for settings that nobody has touched. */
export const UNTOUCHED: RecordingDefaults = {
  video: {},
  timelapse: { interval: 5000, duration: 3_600_000 },
  slowmotion: { captureFps: 120, playbackFps: 30 },
}

export interface RecordingPlan extends Format {
  readonly camera: number
  readonly kind: RecordingMode
  readonly stem: string
  /** Of the file: its pictures and the rate at which they are played. */
  readonly mode: Mode
  readonly bitrateKbps: number
  /** Present when the recording differs from `stream1` and needs an encoder of its own. */
  readonly encode?: Encode
  /** The rate that the camera must be captured at, above its own. */
  readonly captureFps?: number
  readonly timelapse?: { readonly interval_ms: number; readonly playback_fps: number }
  readonly slowMotion?: { readonly playback_fps: number }
  /** Real time without pauses; 0: until stopped. */
  readonly durationMs: number
  /** At most that much of the past is put in front. */
  readonly preRollMs: number
  readonly estimatedBytes: number
}

/** Without a duration, an hour is estimated. */
const ESTIMATED_SECONDS = 3600
const MIN_KBPS = 64
const MAX_KBPS = 100_000
const TIMELAPSE_FPS = 30
/** Names that ask for a format, ours or not; what follows another dot is part of the name. */
const VIDEO_FILE = /\.(mp4|m4v|mov|avi|mkv|webm|mpe?g|ts|m2ts|flv|wmv|3gp|ogv)$/i
/** All that the buffer has. */
const WHOLE_BUFFER_MS = 600_000
/** The test picture is drawn as often as is asked for, up to this. */
const MAX_TEST_FPS = 240

/** Throws the `ApiError` that names what cannot be done. */
export function planRecording(
  request: RecordingRequest,
  camera: CameraView,
  now: Date,
  defaults: RecordingDefaults = UNTOUCHED,
): RecordingPlan {
  const kind = MODES.find((mode) => mode === (request.mode ?? defaults.mode ?? 'video'))
  if (!kind) throw new UnsupportedSetting('mode', `This camera cannot record in mode ${request.mode ?? defaults.mode}`)
  const usual = defaults[kind]
  const extension = VIDEO_FILE.exec(request.filename ?? '')?.[1]?.toLowerCase()
  const format = chooseFormat(
    kind,
    { ...request, format: request.format ?? extension ?? usual.format ?? 'mp4' },
    { available: camera.audio !== null, usual: defaults.video.audio ?? true },
  )
  const stem = request.filename === undefined ? `recording_${timeStem(now)}` : stemOf(request.filename)
  if (stem === null) throw new ApiError('INVALID_REQUEST', 'The filename has no usable character', 'body.filename')
  if (!camera.mode) throw new CameraNotConnected(camera.id)

  const native = camera.mode
  const size = sizeOf(request, native, usual)
  const rates = ratesOf(kind, request, camera, native, defaults)
  const encoded = { ...size, fps: rates.encode }
  // A bitrate is of the file as it is played.
  const bitrateKbps = bitrateOf(request, { ...size, fps: rates.play }, format, usual)
  const mainStream = size.width === native.width && size.height === native.height && rates.encode === native.fps
  const shared = kind === 'video' && format.video === 'h264' && mainStream && bitrateKbps === bitrateFor(native, 'high')
  const timed = { kind, rates, bitrateKbps, interval: request.interval_ms ?? defaults.timelapse.interval }
  const durationMs = request.duration === undefined ? usualDuration(kind, defaults) : request.duration * 1000
  return {
    ...format,
    camera: camera.id,
    kind,
    stem: withoutPartName(stem),
    mode: { ...size, fps: rates.play },
    bitrateKbps,
    ...(shared ? {} : { encode: { ...encoded, bitrate_kbps: bitrateKbps } }),
    ...(rates.capture > native.fps ? { captureFps: rates.capture } : {}),
    ...(kind === 'timelapse' ? { timelapse: { interval_ms: timed.interval, playback_fps: rates.play } } : {}),
    ...(kind === 'slowmotion' ? { slowMotion: { playback_fps: rates.play } } : {}),
    durationMs,
    preRollMs: preRoll(request, kind, shared),
    estimatedBytes: estimate(timed, durationMs > 0 ? durationMs / 1000 : ESTIMATED_SECONDS),
  }
}

function stemOf(filename: string): string | null {
  return sanitiseStem(VIDEO_FILE.test(filename) ? filename : `${filename}.mp4`)
}

/** Milliseconds into the file for a moment of real time without pauses. */
export function mediaTime({ kind, timelapse, slowMotion, encode }: RecordingPlan, realMs: number): number {
  if (kind === 'timelapse' && timelapse) return (realMs / timelapse.interval_ms) * (1000 / timelapse.playback_fps)
  if (kind === 'slowmotion' && slowMotion && encode) return (realMs * encode.fps) / slowMotion.playback_fps
  return realMs
}

interface Rates {
  readonly capture: number
  readonly encode: number
  readonly play: number
}

function ratesOf(
  kind: RecordingMode,
  { fps }: RecordingRequest,
  camera: CameraView,
  native: Mode,
  defaults: RecordingDefaults,
): Rates {
  if (kind === 'timelapse') {
    const play = fps ?? TIMELAPSE_FPS
    return { capture: native.fps, encode: play, play }
  }
  if (kind === 'slowmotion')
    return slowMotionRates(fps ?? defaults.slowmotion.captureFps, defaults.slowmotion.playbackFps, camera)
  if (fps !== undefined && fps > native.fps) {
    throw new UnsupportedSetting('fps', `The camera delivers ${native.fps} frames per second; set its fps first to record more`)
  }
  const encode = fps ?? Math.min(native.fps, defaults.video.fps ?? native.fps)
  return { capture: native.fps, encode, play: encode }
}

/** Only a rate that the camera is known to deliver is promised; what a device could do besides is not asked for during a recording. */
function slowMotionRates(capture: number, play: number, { spec, mode }: CameraView): Rates {
  const most = spec.source.type === 'test' ? MAX_TEST_FPS : Math.max(spec.mode?.fps ?? 0, mode?.fps ?? 0)
  if (capture > most)
    throw new UnsupportedSetting('fps', `This camera captures at most ${most} frames per second, not ${capture}`)
  if (capture <= play) {
    throw new UnsupportedSetting('fps', `Slow motion is captured at more than the ${play} frames per second that it is played at`)
  }
  return { capture, encode: capture, play }
}

/** What was asked for, which must be within what the camera delivers now, or what is set, as far as it is. */
function sizeOf({ resolution }: RecordingRequest, native: Mode, usual: PictureDefaults): Size {
  const size = resolution === undefined ? usualSize(native, usual) : parseResolution(resolution)
  if (!size) throw new ApiError('INVALID_RESOLUTION', 'The resolution must be WIDTHxHEIGHT with even sides', 'resolution')
  if (size.width > native.width || size.height > native.height) {
    const now = `${native.width}x${native.height}`
    throw new ApiError('INVALID_RESOLUTION', `The camera delivers ${now}; set its resolution first to record more`, 'resolution')
  }
  return { width: size.width, height: size.height }
}

function usualSize(native: Mode, { resolution }: PictureDefaults): Size {
  const set = resolution === undefined ? null : parseResolution(resolution)
  return set && set.width <= native.width && set.height <= native.height ? set : native
}

function bitrateOf(request: RecordingRequest, encoded: Mode, { video }: Format, usual: PictureDefaults): number {
  const bitrate = request.bitrate ?? (request.quality === undefined ? usual.bitrate : undefined)
  const chosen = Math.round(bitrateFor(encoded, request.quality ?? 'high') * BITRATE_SHARE[video])
  const kbps = bitrate === undefined ? Math.min(MAX_KBPS, Math.max(MIN_KBPS, chosen)) : Math.round(bitrate / 1000)
  if (kbps < MIN_KBPS || kbps > MAX_KBPS) {
    const [least, most] = [MIN_KBPS * 1000, MAX_KBPS * 1000]
    throw new UnsupportedSetting('bitrate', `The bitrate must be between ${least} and ${most} bits per second`)
  }
  return kbps
}

function usualDuration(kind: RecordingMode, { timelapse }: RecordingDefaults): number {
  return kind === 'timelapse' ? timelapse.duration : 0
}

/** The past is kept as the main stream's video: another encoding of it does not exist. */
function preRoll({ pre_roll: wanted, preRollMs = 0 }: RecordingRequest, kind: RecordingMode, shared: boolean): number {
  if (!wanted) return kind === 'video' && shared ? preRollMs : 0
  if (kind !== 'video' || !shared) {
    throw new UnsupportedSetting('pre_roll', 'Only a recording of the main stream as it is can begin in the past')
  }
  return WHOLE_BUFFER_MS
}

function estimate(
  { kind, rates, bitrateKbps, interval }: { kind: RecordingMode; rates: Rates; bitrateKbps: number; interval: number },
  realSeconds: number,
): number {
  const pictures = kind === 'timelapse' ? (realSeconds * 1000) / interval : realSeconds * rates.encode
  const seconds = pictures / rates.play
  return Math.round((bitrateKbps * 1000 * seconds) / 8)
}

/** `x.part2` is the name of a second part of `x`, and no recording's own. */
function withoutPartName(stem: string): string {
  return stem.replace(/\.(?=part\d+$)/i, '_')
}
