/** Rows of the catalogue for tests that need no camera. */
import type { NewRow } from '../../app/server/recording/index.ts'

/** A finished recording of one part; `over` says what is special about it. */
export function newRow(filename: string, over: Partial<NewRow> = {}): NewRow {
  const path = over.path ?? `/media/data/recordings/${filename}`
  const { size = 1000, duration = 1000, timestamp_start = 0 } = over
  return {
    filename,
    media_type: 'video',
    encoding: 'mp4',
    video_codec: 'h264',
    audio_codec: null,
    timestamp_start,
    timestamp_end: timestamp_start + duration,
    duration,
    size,
    resolution: '1280x720',
    fps: 30,
    state: 'ready',
    tag_markers: 0,
    path,
    parts: [{ filename, path, duration, size, sha256: null }],
    camera: 0,
    time_synced: true,
    boot_id: '',
    trigger: 'manual',
    created_by: null,
    ...over,
  }
}
