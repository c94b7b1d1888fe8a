/** `--camera SPEC`: where a camera's picture comes from and in which mode it should be delivered. */
import { isAbsolute } from 'node:path'
import type { AudioSource, Mode, Source } from '../media/index.ts'

/** What was asked for; `auto`: the sound card on the same USB device as the camera. */
export type AudioWish = 'none' | 'auto' | AudioSource

export interface CameraSpec {
  readonly source: Source
  /** Null: what the configuration says. */
  readonly mode: Mode | null
  readonly audio: AudioWish
  /** As it was written, but for the sound; settings made at run time hold while it stays the same. */
  readonly text: string
}

const MAX_PIXELS_ACROSS = 7680
const MAX_PIXELS_DOWN = 4320

export interface Size {
  readonly width: number
  readonly height: number
}

/** `<width>x<height>`, both even and at most 7680x4320; null for anything else. */
export function parseResolution(text: string): Size | null {
  const match = /^([1-9]\d{1,4})x([1-9]\d{1,4})$/.exec(text)
  if (!match) return null
  const width = Number(match[1])
  const height = Number(match[2])
  const even = width % 2 === 0 && height % 2 === 0
  return even && width >= 16 && height >= 16 && width <= MAX_PIXELS_ACROSS && height <= MAX_PIXELS_DOWN ? { width, height } : null
}

export function formatResolution({ width, height }: Size): string {
  return `${width}x${height}`
}

/**
 * `test[:1280x720@30]`, `v4l2:/dev/video0[@1280x720@30]`, `file:/path/clip.mp4[@1280x720@30]`, each with `,audio=none|test|auto|alsa:DEVICE`
 * behind it if its default is not wanted: a tone for the test picture, `auto` for V4L2, `none` for a file.
 * Throws an Error whose message says what is wrong.
 */
export function parseCameraSpec(whole: string): CameraSpec {
  const [, text = whole, audio] = /^(.*),audio=(.*)$/s.exec(whole) ?? []
  const picture = parsePicture(text)
  return {
    ...picture,
    audio: audio === undefined ? DEFAULT_AUDIO[picture.source.type] : parseAudio(audio, picture.source, whole),
  }
}

const DEFAULT_AUDIO = { test: { type: 'test' }, v4l2: 'auto', file: 'none' } as const satisfies Record<Source['type'], AudioWish>

function parseAudio(text: string, source: Source, whole: string): AudioWish {
  if (text === 'none') return text
  if (text === 'test') return { type: text }
  if (text === 'auto' && source.type === 'v4l2') return text
  if (text === 'auto') throw new Error(`"${whole}": audio=auto is for v4l2 cameras`)
  const [, device] = /^alsa:([A-Za-z0-9:,=._-]{1,128})$/.exec(text) ?? []
  if (device === undefined) throw new Error(`"${whole}": audio must be none, test, auto or alsa:DEVICE, such as alsa:hw:1,0`)
  return { type: 'alsa', device }
}

function parsePicture(text: string): Omit<CameraSpec, 'audio'> {
  const [, type, rest = ''] = /^(test|v4l2|file)(?::(.*))?$/s.exec(text) ?? []
  if (type === 'test') return { source: { type }, mode: rest === '' ? null : parseMode(rest, text), text }
  const [, path = '', modeText] = /^(.*?)(?:@(\d+x\d+@\d+))?$/s.exec(rest) ?? []
  if (type === undefined || path === '') {
    throw new Error(`"${text}" is no camera: use test:1280x720@30, v4l2:/dev/video0 or file:/path/clip.mp4`)
  }
  if (!isAbsolute(path) || path.includes('\0')) throw new Error(`"${text}": the path must be absolute`)
  const mode = modeText === undefined ? null : parseMode(modeText, text)
  return { source: type === 'v4l2' ? { type, device: path } : { type: 'file', path }, mode, text }
}

function parseMode(text: string, whole: string): Mode {
  const [resolution = '', fps = '', ...surplus] = text.split('@')
  const size = parseResolution(resolution)
  const rate = Number(fps)
  if (!size || surplus.length > 0 || !/^\d{1,3}$/.test(fps) || rate < 1 || rate > 240) {
    throw new Error(`"${whole}": the mode must be WIDTHxHEIGHT@FPS with even sides up to 7680x4320 and 1 to 240 frames a second`)
  }
  return { ...size, fps: rate }
}
