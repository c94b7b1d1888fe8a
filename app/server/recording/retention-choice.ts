/** Which recordings retention may take, and in which order. Pure. */
import type { RecordingRow } from './row.ts'

export type Candidate = Pick<
  RecordingRow,
  'id' | 'state' | 'tag_markers' | 'size' | 'timestamp_start' | 'time_synced' | 'restored_at' | 'path'
>

const DAY_MS = 86_400_000
/** Rows considered for one choice: beyond that, a database full of small recordings would hold up everything else. */
export const MAX_LOOK = 2000

/** Never a running recording, never a tagged one. */
export function isDeletable({ state, tag_markers }: Pick<RecordingRow, 'state' | 'tag_markers'>): boolean {
  return state !== 'recording' && tag_markers === 0
}

/**
 * The oldest whose sizes add up to `missing` bytes; all that can be had when they do not. `candidates` come ordered by their start. One that
 * was made before the clock was set carries a time that means nothing: ids grow with time, so it counts as older than every later id. Those
 * that wait to be copied go when nothing else is left.
 */
export async function chooseForSpace<R extends Candidate>(
  candidates: Iterable<R> | AsyncIterable<R>,
  missing: number,
  waits: (id: number) => boolean = () => false,
): Promise<R[]> {
  const seen: R[] = []
  let dated = 0
  const waiting = new Set<R>()
  for await (const row of candidates) {
    if (!isDeletable(row) || row.size <= 0) continue
    seen.push(row)
    if (waits(row.id)) waiting.add(row)
    else if (row.time_synced) dated += row.size
    if (dated >= missing || seen.length >= MAX_LOOK) break
  }
  const chosen: R[] = []
  let bytes = 0
  const ordered = oldestFirst(seen)
  for (const row of [...ordered.filter((row) => !waiting.has(row)), ...ordered.filter((row) => waiting.has(row))]) {
    if (bytes >= missing) break
    chosen.push(row)
    bytes += row.size
  }
  return chosen
}

/** Dated rows in the order of their start, the others between them by id. */
export function oldestFirst<R extends Candidate>(rows: readonly R[]): R[] {
  const dated = rows.filter((row) => row.time_synced).sort((a, b) => a.timestamp_start - b.timestamp_start || a.id - b.id)
  const undated = rows.filter((row) => !row.time_synced).sort((a, b) => a.id - b.id)
  const ordered: R[] = []
  for (const row of dated) {
    while (undated[0] && undated[0].id < row.id) ordered.push(undated.shift() as R)
    ordered.push(row)
  }
  return [...ordered, ...undated]
}

/** Since when it has an age; null: it has none. A time from before the clock was set proves nothing, and what came back is as good as new. */
function ageSince({ timestamp_start, time_synced, restored_at }: Candidate): number | null {
  if (restored_at !== undefined) return restored_at
  return time_synced ? timestamp_start : null
}

/** Those that began more than `days` ago, at most `limit`. */
export async function chooseForAge<R extends Candidate>(
  candidates: Iterable<R> | AsyncIterable<R>,
  now: number,
  days: number,
  limit: number,
): Promise<R[]> {
  const chosen: R[] = []
  for await (const row of candidates) {
    const limitTime = now - days * DAY_MS
    if (row.timestamp_start >= limitTime || chosen.length >= limit) break
    const since = ageSince(row)
    if (isDeletable(row) && since !== null && since < limitTime) chosen.push(row)
  }
  return chosen
}

/** Bytes that retention keeps free: as set, but on a small medium no more than a tenth of it. 0: off. */
export function freeBytesWanted(minFree: number, total: number): number {
  return Math.min(minFree, Math.floor(total / 10))
}
