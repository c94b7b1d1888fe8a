/** Which containers, codecs and modes go together. Pure. */
import { ApiError, UnsupportedSetting } from '../errors.ts'

export const MODES = ['video', 'timelapse', 'slowmotion'] as const
export type RecordingMode = (typeof MODES)[number]
export const CONTAINERS = ['mp4', 'avi'] as const
export type Container = (typeof CONTAINERS)[number]
export const VIDEO_CODECS = ['h264', 'h265', 'mjpeg'] as const
export type VideoCodec = (typeof VIDEO_CODECS)[number]
export const AUDIO_CODECS = ['aac', 'mp3', 'pcm'] as const
export type AudioCodec = (typeof AUDIO_CODECS)[number]

export interface Format {
  readonly container: Container
  readonly video: VideoCodec
  readonly audio: AudioCodec | null
}

/** The first of each list is what is taken where a request names none. */
const CARRIES: Record<Container, { readonly video: readonly VideoCodec[]; readonly audio: readonly AudioCodec[] }> = {
  mp4: { video: ['h264', 'h265'], audio: ['aac', 'mp3'] },
  avi: { video: ['h264', 'mjpeg'], audio: ['pcm', 'mp3'] },
}

/** Bits that a codec needs for the picture that H.264 takes one for. */
export const BITRATE_SHARE: Record<VideoCodec, number> = { h264: 1, h265: 0.6, mjpeg: 5 }

export interface FormatWishes {
  readonly format?: string | undefined
  readonly video_codec?: string | undefined
  readonly audio_codec?: string | undefined
  /** True was asked for, and its absence is an error; undefined: as the settings say, silent where there is no source. */
  readonly includeAudio?: boolean | undefined
}

export interface AudioSituation {
  readonly available: boolean
  /** The user's setting for recordings that do not say. */
  readonly usual: boolean
}

/** Throws INVALID_FORMAT for what no file can hold, UNSUPPORTED_SETTING for sound that this recording cannot have. */
export function chooseFormat(mode: RecordingMode, wishes: FormatWishes, sound: AudioSituation): Format {
  const container = CONTAINERS.find((name) => name === wishes.format)
  if (!container) throw new ApiError('INVALID_FORMAT', `Recording as ${wishes.format} is not supported`, 'format')
  const carries = CARRIES[container]
  const video = pick(carries.video, wishes.video_codec, container, 'video_codec')
  const named = pick(carries.audio, wishes.audio_codec, container, 'audio_codec')
  const demanded = wishes.includeAudio ?? (wishes.audio_codec !== undefined ? true : undefined)
  if (demanded && mode !== 'video') throw new UnsupportedSetting('includeAudio', `A ${mode} recording has no sound`)
  if (demanded && !sound.available) throw new UnsupportedSetting('includeAudio', 'This camera has no audio source')
  const audible = demanded ?? (sound.usual && sound.available && mode === 'video')
  return { container, video, audio: audible ? named : null }
}

function pick<C extends string>(carried: readonly C[], wanted: string | undefined, container: Container, field: string): C {
  const found = wanted === undefined ? carried[0] : carried.find((codec) => codec === wanted)
  if (found === undefined) {
    const choice = carried.join(' or ')
    throw new ApiError('INVALID_FORMAT', `${container} cannot carry ${wanted}; it carries ${choice}`, field)
  }
  return found
}
