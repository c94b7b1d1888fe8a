/** What the catalogue stores: one row a recording, still or copy, with the specification's columns and what else we know of it. */

export type MediaState = 'defect' | 'recording' | 'ready'
export const MEDIA_STATES: readonly MediaState[] = ['defect', 'recording', 'ready']

export const MEDIA_TYPES = ['video', 'timelapse', 'slowmotion', 'image', 'backup'] as const
export type MediaType = (typeof MEDIA_TYPES)[number]
/** What a list shows that does not ask for others: moving pictures. */
export const VIDEO_TYPES: readonly MediaType[] = ['video', 'timelapse', 'slowmotion']

/** A file of a recording; a long recording goes on in further ones. */
export interface RecordingPart {
  readonly filename: string
  /** Device path. */
  readonly path: string
  /** Milliseconds. */
  readonly duration: number
  readonly size: number
  /** Hex; null until it was computed. */
  readonly sha256: string | null
}

/** Times in epoch milliseconds, `duration` in milliseconds, `size` in bytes. */
export interface RecordingRow {
  readonly id: number
  /** Of the first part, as is `path`. */
  readonly filename: string
  readonly media_type: MediaType
  readonly encoding: 'mp4' | 'avi' | 'jpg' | 'jpeg' | 'png'
  readonly video_codec: 'h264' | 'h265' | 'mjpeg' | null
  readonly audio_codec: 'aac' | 'mp3' | 'pcm' | null
  readonly timestamp_start: number
  readonly timestamp_end: number
  /** Sum of the parts, as is `size`. */
  readonly duration: number
  readonly size: number
  readonly resolution: string
  readonly fps: number
  readonly state: MediaState
  readonly tag_markers: number
  /** Device path. */
  readonly path: string
  /** At least one. */
  readonly parts: readonly RecordingPart[]
  readonly camera: number
  /** False: the clock had not been set yet when it started. */
  readonly time_synced: boolean
  /** When it came back, or was found as a file without an entry: its age counts from then. Null: the clock was not set then, it has no age. */
  readonly restored_at?: number | null
  /** The boot of the machine in which it started, as the kernel names it. */
  readonly boot_id: string
  readonly trigger: 'manual' | 'schedule' | 'motion' | 'alert'
  readonly created_by: string | null
}

export type NewRow = Omit<RecordingRow, 'id'>
