/** `--camera SPEC`: where a camera's picture comes from and in which mode it should be delivered. */
import { isAbsolute } from 'node:path'
import type { Mode, Source } from '../media/index.ts'

export interface CameraSpec {
  readonly source: Source
  readonly mode: Mode
  /** As it was written; settings made at run time hold while it stays the same. */
  readonly text: string
}

export const DEFAULT_MODE: Mode = { width: 1280, height: 720, fps: 30 }
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
 * `test[:1280x720@30]`, `v4l2:/dev/video0[@1280x720@30]`, `file:/path/clip.mp4[@1280x720@30]`.
 * Throws an Error whose message says what is wrong.
 */
export function parseCameraSpec(text: string): CameraSpec {
  const [, type, rest = ''] = /^(test|v4l2|file)(?::(.*))?$/s.exec(text) ?? []
  if (type === 'test') return { source: { type }, mode: rest === '' ? DEFAULT_MODE : parseMode(rest, text), text }
  const [, path = '', modeText] = /^(.*?)(?:@(\d+x\d+@\d+))?$/s.exec(rest) ?? []
  if (type === undefined || path === '') {
    throw new Error(`"${text}" is no camera: use test:1280x720@30, v4l2:/dev/video0 or file:/path/clip.mp4`)
  }
  if (!isAbsolute(path) || path.includes('\0')) throw new Error(`"${text}": the path must be absolute`)
  const mode = modeText === undefined ? DEFAULT_MODE : parseMode(modeText, text)
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
