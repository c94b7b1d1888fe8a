/** Bitrates and streams that follow from a mode. */
import type { Mode, StreamAudio, StreamConfig } from '../media/index.ts'

export const QUALITIES = ['low', 'medium', 'high'] as const
export type Quality = (typeof QUALITIES)[number]

const SHARE: Record<Quality, number> = { low: 0.25, medium: 0.5, high: 1 }
/** 720p30 at high quality: 4 Mbit/s. Larger pictures need less per pixel: 1080p30 comes to 8 Mbit/s. */
const ANCHOR = { pixelsPerSecond: 1280 * 720 * 30, kbps: 4000, exponent: 0.85 }
const MIN_KBPS = 100
const MAX_KBPS = 100_000
const KEY_FRAME_SECONDS = 2
const SECOND_STREAM_WIDTH = 640

/** Bitrate in kbit/s (in steps of 50) for H.264 in this mode. */
export function bitrateFor({ width, height, fps }: Mode, quality: Quality): number {
  const ratio = (width * height * fps) / ANCHOR.pixelsPerSecond
  const kbps = ANCHOR.kbps * ratio ** ANCHOR.exponent * SHARE[quality]
  return Math.min(MAX_KBPS, Math.max(MIN_KBPS, Math.round(kbps / 50) * 50))
}

/** `stream1` as captured, `stream2` at most 640 wide in the same proportions; both with the same sound. */
export function streamsFor(mode: Mode, audio: StreamAudio | null = null): StreamConfig[] {
  const stream = (name: string, at: Mode): StreamConfig => ({
    name,
    ...at,
    bitrate_kbps: bitrateFor(at, 'high'),
    gop: Math.max(1, Math.round(at.fps * KEY_FRAME_SECONDS)),
    audio,
  })
  const scale = Math.min(1, SECOND_STREAM_WIDTH / mode.width)
  const even = (pixels: number) => Math.max(16, Math.round((pixels * scale) / 2) * 2)
  return [stream('stream1', mode), stream('stream2', { width: even(mode.width), height: even(mode.height), fps: mode.fps })]
}
