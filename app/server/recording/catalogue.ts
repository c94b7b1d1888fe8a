/**
 * The catalogue of recordings: one row a recording with the specification's columns, an index on (timestamp_start, timestamp_end), one
 * on state, and one on the paths of all parts. A row and its index entries change in one transaction.
 */
import type { Store, Table } from '../store/index.ts'
import { type MediaState, type NewRow, type RecordingRow, VIDEO_TYPES } from './row.ts'

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

/** Grows with each change of what the indexes hold: they are then made anew from the rows. */
const LAYOUT = 1
const REBUILD_BATCH = 5000

export class Catalogue {
  private readonly rows: Table<number, RecordingRow>
  private readonly byTime: Table<TimeKey, true>
  private readonly byState: Table<StateKey, true>
  private readonly paths: Table<string, number>

  constructor(private readonly store: Store) {
    this.rows = store.table('recordings')
    this.byTime = store.table('recordings_by_time')
    this.byState = store.table('recordings_by_state')
    this.paths = store.table('recordings_by_path')
    const meta = store.table<string, number>('meta')
    if (meta.get('recordings_layout') === LAYOUT) return
    this.rebuild()
    store.transaction(() => meta.put('recordings_layout', LAYOUT))
  }

  create(row: NewRow): RecordingRow {
    return this.store.transaction(() => {
      const created = { ...row, id: this.store.nextId('recordings') }
      this.put(created)
      return created
    })
  }

  get(id: number): RecordingRow | undefined {
    return this.rows.get(id)
  }

  /** The recording that a file belongs to, whichever part it is. */
  byPath(devicePath: string): RecordingRow | undefined {
    const id = this.paths.get(devicePath)
    return id === undefined ? undefined : this.rows.get(id)
  }

  update(id: number, change: Partial<NewRow>): RecordingRow | undefined {
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

  /** Finished moving pictures without a tag, oldest first: what retention may take. */
  *oldestUntagged(): Generator<RecordingRow> {
    for (const [, , id] of this.byTime.keys()) {
      const row = this.rows.get(id)
      if (row && row.state !== 'recording' && row.tag_markers === 0 && VIDEO_TYPES.includes(row.media_type)) yield row
    }
  }

  private put(row: RecordingRow): void {
    this.rows.put(row.id, row)
    this.addIndexes(row)
  }

  private addIndexes(row: RecordingRow): void {
    this.byTime.put([row.timestamp_start, row.timestamp_end, row.id], true)
    this.byState.put([row.state, row.id], true)
    for (const { path } of row.parts) this.paths.put(path, row.id)
  }

  private removeIndexes(row: RecordingRow): void {
    this.byTime.remove([row.timestamp_start, row.timestamp_end, row.id])
    this.byState.remove([row.state, row.id])
    for (const { path } of row.parts) this.paths.remove(path)
  }

  /** In batches: a crash in between begins anew. */
  private rebuild(): void {
    for (const table of [this.byTime, this.byState, this.paths]) table.clear()
    for (let after = 0; ; ) {
      const batch = [...this.rows.range({ start: after + 1, limit: REBUILD_BATCH })]
      this.store.transaction(() => {
        for (const { value } of batch) this.addIndexes(value)
      })
      after = batch.at(-1)?.key ?? 0
      if (batch.length < REBUILD_BATCH) return
    }
  }
}
