/**
 * The catalogue of recordings: one row a recording with the specification's columns, an index on (timestamp_start, timestamp_end) and one
 * on state. A row and its index entries change in one transaction.
 */
import type { Store, Table } from '../store/index.ts'

export type MediaState = 'defect' | 'recording' | 'ready'
export const MEDIA_STATES: readonly MediaState[] = ['defect', 'recording', 'ready']

/** Times in epoch milliseconds, `duration` in milliseconds, `size` in bytes. */
export interface RecordingRow {
  readonly id: number
  readonly filename: string
  readonly media_type: 'video' | 'timelapse' | 'slowmotion' | 'image' | 'backup'
  readonly encoding: 'mp4' | 'avi' | 'jpg' | 'jpeg' | 'png'
  readonly timestamp_start: number
  readonly timestamp_end: number
  readonly duration: number
  readonly size: number
  readonly resolution: string
  readonly fps: number
  readonly state: MediaState
  readonly tag_markers: number
  /** Device path of the file. */
  readonly path: string
  readonly camera: number
}

export interface ListQuery {
  readonly limit: number
  readonly offset: number
  readonly state?: MediaState
  /** Started at or after, and before, epoch milliseconds. */
  readonly from?: number
  readonly to?: number
}

type TimeKey = [start: number, end: number, id: number]
type StateKey = [state: MediaState, id: number]

export class Catalogue {
  private readonly rows: Table<number, RecordingRow>
  private readonly byTime: Table<TimeKey, true>
  private readonly byState: Table<StateKey, true>

  constructor(private readonly store: Store) {
    this.rows = store.table('recordings')
    this.byTime = store.table('recordings_by_time')
    this.byState = store.table('recordings_by_state')
  }

  create(row: Omit<RecordingRow, 'id'>): RecordingRow {
    return this.store.transaction(() => {
      const created = { id: this.store.nextId('recordings'), ...row }
      this.put(created)
      return created
    })
  }

  get(id: number): RecordingRow | undefined {
    return this.rows.get(id)
  }

  update(id: number, change: Partial<Omit<RecordingRow, 'id'>>): RecordingRow | undefined {
    return this.store.transaction(() => {
      const row = this.rows.get(id)
      if (!row) return undefined
      this.removeIndexes(row)
      const changed = { ...row, ...change }
      this.put(changed)
      return changed
    })
  }

  remove(id: number): void {
    this.store.transaction(() => {
      const row = this.rows.get(id)
      if (!row) return
      this.removeIndexes(row)
      this.rows.remove(id)
    })
  }

  /** Newest first. */
  list({ limit, offset, state, from = 0, to }: ListQuery): { rows: RecordingRow[]; total: number } {
    const end = to ?? Number.MAX_SAFE_INTEGER
    if (state === undefined) {
      // Reversed, lmdb starts at the upper bound.
      const range = { start: [end], end: [from], reverse: true } as never
      const rows = [...this.byTime.keys({ ...(range as object), limit, offset })].map(([, , id]) => this.rows.get(id))
      return { rows: rows.filter((row) => row !== undefined), total: this.byTime.count(range) }
    }
    const matching = this.inState(state).filter(({ timestamp_start }) => timestamp_start >= from && timestamp_start < end)
    matching.sort((a, b) => b.timestamp_start - a.timestamp_start || b.id - a.id)
    return { rows: matching.slice(offset, offset + limit), total: matching.length }
  }

  inState(state: MediaState): RecordingRow[] {
    const keys = this.byState.keys({ start: [state, 0], end: [state, Number.MAX_SAFE_INTEGER] })
    return [...keys].map(([, id]) => this.rows.get(id)).filter((row) => row !== undefined)
  }

  private put(row: RecordingRow): void {
    this.rows.put(row.id, row)
    this.byTime.put([row.timestamp_start, row.timestamp_end, row.id], true)
    this.byState.put([row.state, row.id], true)
  }

  private removeIndexes(row: RecordingRow): void {
    this.byTime.remove([row.timestamp_start, row.timestamp_end, row.id])
    this.byState.remove([row.state, row.id])
  }
}
