/** Files without an entry: what can be played gets one. */
import { open, stat } from 'node:fs/promises'
import { basename, extname, posix } from 'node:path'
import type { DeviceStorage } from '../files/index.ts'
import type { Clock } from '../platform/index.ts'
import type { Catalogue } from './catalogue.ts'
import { judgeFile } from './finish.ts'
import { readMp4 } from './mp4.ts'
import type { RecordingPart, RecordingRow } from './row.ts'

/** Which camera it was nobody knows: beyond all that there may be, so that only who is not limited to cameras sees it. */
const UNKNOWN_CAMERA = 256
const HEAD_BYTES = 256 * 1024
/** How the sample entries and stream headers of the two containers spell the codecs. */
const VIDEO_MARKS = { avc1: 'h264', avc3: 'h264', hvc1: 'h265', hev1: 'h265', H264: 'h264', MJPG: 'mjpeg' } as const
const AUDIO_MARKS = { mp4a: 'aac', '.mp3': 'mp3' } as const

export interface OrphanGroup {
  /** Device paths of all parts, the first one first. */
  readonly paths: readonly string[]
}

/** Further parts (`name.part2.mp4`) go with their first. */
export function groupParts(paths: readonly string[]): OrphanGroup[] {
  const known = new Set(paths)
  const nth = (path: string) => /^(.*)\.part(\d+)(\.[^./]+)$/.exec(path)
  const firsts = paths.filter((path) => {
    const match = nth(path)
    return !match || !known.has(`${match[1]}${match[3]}`)
  })
  return firsts.map((first) => {
    const { dir, name, ext } = posix.parse(first)
    const group = [first]
    for (let n = 2; known.has(posix.join(dir, `${name}.part${n}${ext}`)); n++)
      group.push(posix.join(dir, `${name}.part${n}${ext}`))
    return { paths: group }
  })
}

export type Dating = Pick<Clock, 'now' | 'synchronised' | 'builtAt'>

/** What an entry says that comes back just now, so that no retention takes it right away. */
export function restoredNow(clock: Dating): { restored_at: number | null } {
  return { restored_at: clock.synchronised ? clock.now().getTime() : null }
}

/**
 * The new entry; null when nothing of it plays. Its time is that of the file: written last when the recording ended. A file from before this
 * program was built was written while the clock was not set, or so it must be taken: its time means nothing.
 */
export async function adopt(
  { paths }: OrphanGroup,
  catalogue: Catalogue,
  storage: DeviceStorage,
  clock: Dating,
): Promise<RecordingRow | null> {
  const parts: RecordingPart[] = []
  for (const path of paths) {
    const { state, durationMs, sizeBytes } = await judgeFile(storage.hostPath(path))
    if (state === 'ready') parts.push({ filename: basename(path), path, duration: durationMs, size: sizeBytes, sha256: null })
  }
  const [first] = parts
  const last = parts.at(-1)
  if (!first || !last) return null
  const duration = parts.reduce((sum, part) => sum + part.duration, 0)
  const ended = Math.round((await stat(storage.hostPath(last.path))).mtimeMs)
  const host = storage.hostPath(first.path)
  const summary = extname(first.path) === '.mp4' ? await readMp4(host) : null
  const head = await headOf(host)
  return catalogue.create({
    filename: first.filename,
    media_type: 'video',
    encoding: extname(first.path) === '.avi' ? 'avi' : 'mp4',
    video_codec: markIn(head, VIDEO_MARKS),
    audio_codec: markIn(head, AUDIO_MARKS),
    timestamp_start: ended - duration,
    timestamp_end: ended,
    duration,
    size: parts.reduce((sum, part) => sum + part.size, 0),
    resolution: summary ? `${summary.width}x${summary.height}` : '',
    fps: summary ? Math.round((summary.frames / summary.durationMs) * 100_000) / 100 : 0,
    state: 'ready',
    tag_markers: 0,
    path: first.path,
    parts,
    camera: UNKNOWN_CAMERA,
    time_synced: ended >= clock.builtAt,
    ...restoredNow(clock),
    boot_id: '',
    trigger: 'manual',
    created_by: null,
  })
}

function markIn<M extends Readonly<Record<string, string>>>(head: string, marks: M): M[keyof M] | null {
  const found = Object.keys(marks).find((mark) => head.includes(mark))
  return found === undefined ? null : (marks[found] as M[keyof M])
}

async function headOf(path: string): Promise<string> {
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    return buffer.toString('latin1', 0, bytesRead)
  } finally {
    await file.close()
  }
}
