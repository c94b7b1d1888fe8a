/**
 * The catalogue of recordings: one row a recording with the specification's columns. A row and its index entries change in one transaction,
 * and a list costs the same whether there are ten entries or a million.
 */
import { ApiError } from '../errors.ts'
import type { Store, Table } from '../store/index.ts'
import { cellMatches, cellOf } from './cells.ts'
import { CatalogueIndexes, comparePositions, isBehind, type Position, positionOf, type WalkFilter } from './indexes.ts'
import { MEDIA_STATES, type MediaState, type NewRow, type RecordingRow, VIDEO_TYPES } from './row.ts'
import { TIME_LIMIT } from './time-counts.ts'

/** Moving pictures only unless `types` says otherwise. */
export interface ListQuery extends WalkFilter {
  readonly limit: number
  readonly offset: number
  readonly state?: MediaState
  readonly oldestFirst?: boolean
  /** Begins behind this entry instead of at an offset. */
  readonly after?: Position
}

export interface Page {
  readonly rows: RecordingRow[]
  readonly total: number
  /** Where the next page begins; null: there is none. */
  readonly next: Position | null
}

/** Grows with each change of what the indexes hold: they are then made anew from the rows. */
const LAYOUT = 2
const REBUILD_BATCH = 500
/** How much is read ahead of whoever walks: nothing stays open while he works on it. */
const WALK_BATCH = 256

export class Catalogue {
  private readonly rows: Table<number, RecordingRow>
  private readonly indexes: CatalogueIndexes
  private readonly removing: ((id: number) => void)[] = []

  constructor(
    private readonly store: Store,
    private readonly now: () => number = Date.now,
  ) {
    this.rows = store.table('recordings')
    this.indexes = new CatalogueIndexes(store)
    const meta = store.table<string, number>('meta')
    if (meta.get('recordings_layout') === LAYOUT) return
    this.rebuild()
    store.urgent(() => meta.put('recordings_layout', LAYOUT))
  }

  create(row: NewRow): RecordingRow {
    return this.store.transaction(() => {
      const created = whole({ ...row, id: this.store.nextId('recordings') })
      this.rows.put(created.id, created)
      this.indexes.change(null, created)
      return created
    })
  }

  /** Stills and copies: what is finished when it is entered. */
  addMedia(
    media: Pick<RecordingRow, 'media_type' | 'encoding' | 'filename' | 'path' | 'size' | 'camera' | 'timestamp_start'> &
      Partial<NewRow>,
  ): RecordingRow {
    const { filename, path, size, timestamp_start, duration = 0 } = media
    return this.create({
      timestamp_end: timestamp_start + duration,
      duration,
      resolution: '',
      fps: 0,
      state: 'ready',
      tag_markers: 0,
      video_codec: null,
      audio_codec: null,
      parts: [{ filename, path, duration, size, sha256: null }],
      time_synced: true,
      boot_id: '',
      trigger: 'manual',
      created_by: null,
      ...media,
    })
  }

  get(id: number): RecordingRow | undefined {
    return this.rows.get(id)
  }

  /** The recording that a file belongs to, whichever part it is. */
  byPath(devicePath: string): RecordingRow | undefined {
    const id = this.indexes.idOfPath(devicePath)
    return id === undefined ? undefined : this.rows.get(id)
  }

  /** By itself it works on a full disk too: what was recorded last must be found again. */
  update(id: number, change: Partial<NewRow>): RecordingRow | undefined {
    return this.store.urgent(() => {
      const row = this.rows.get(id)
      if (!row) return undefined
      const changed = whole({ ...row, ...change, id })
      this.rows.put(id, changed)
      this.indexes.change(row, changed)
      return changed
    })
  }

  /**
   * Those after the number `after`, a batch of them, are as good as new since then; returns the number of the last one, null where none is left. What
   * walks through all of them must let others in between: there may be a million, and each batch waits for the disk.
   */
  restoreBatch(after: number, restored_at: number): number | null {
    const batch = [...this.rows.range({ start: after + 1, limit: REBUILD_BATCH })]
    this.store.urgent(() => {
      // No index knows this time.
      for (const { key, value } of batch) this.rows.put(key, { ...value, restored_at })
    })
    return batch.length < REBUILD_BATCH ? null : (batch.at(-1)?.key ?? null)
  }

  /** With all that hangs on it. */
  remove(id: number): void {
    this.store.urgent(() => {
      const row = this.rows.get(id)
      if (!row) return
      for (const work of this.removing) work(id)
      this.indexes.change(row, null)
      this.rows.remove(id)
    })
  }

  /** What goes with a recording: `work` runs in the transaction that removes it. */
  onRemove(work: (id: number) => void): void {
    this.removing.push(work)
  }

  /** Newest first unless asked otherwise. */
  list(query: ListQuery): Page {
    const { limit, offset, oldestFirst = false, after } = query
    const filter = filterOf(query)
    const { cells, from, to } = this.scope(filter)
    const early = this.early(filter, cells, from, !oldestFirst)
    const within = this.indexes.count(cells, from, to)
    const total = within + early.length
    if (after) {
      const rows = [...take(this.walk(query, oldestFirst, after), limit)]
      return { rows, total, next: nextOf(rows, rows.length === limit) }
    }
    const inside = (skip: number, count: number) =>
      [...take(this.indexes.page(cells, from, to, skip, !oldestFirst), count)].flatMap(([, , id]) => this.rows.get(id) ?? [])
    const [first, behind] = oldestFirst ? [early.length, within] : [within, early.length]
    const shares = [share(offset, limit, 0, first), share(offset, limit, first, behind)] as const
    const [a, b] = shares.map(({ skip, count }, n) => {
      if (count === 0) return []
      return (n === 0) === oldestFirst ? early.slice(skip, skip + count) : inside(skip, count)
    })
    const rows = [...(a ?? []), ...(b ?? [])]
    return { rows, total, next: nextOf(rows, offset + rows.length < total) }
  }

  /** How many a list has. */
  count(query: ListQuery): number {
    const filter = filterOf(query)
    const { cells, from, to } = this.scope(filter)
    return this.indexes.count(cells, from, to) + this.early(filter, cells, from, false).length
  }

  /** Whether a list has this entry. */
  matches(row: RecordingRow, query: ListQuery): boolean {
    const { from = 0, to = TIME_LIMIT, ...filter } = filterOf(query)
    return cellMatches(cellOf(row), filter) && row.timestamp_start <= to && from <= to && this.endOf(row) >= from
  }

  /** All that a list has, in order, behind `after`. Whoever walks may wait and write in between. */
  *walk(query: Omit<ListQuery, 'limit' | 'offset'>, oldestFirst: boolean, after?: Position): Generator<RecordingRow> {
    const filter = filterOf(query)
    const { cells, from, to } = this.scope(filter)
    const early = this.early(filter, cells, from, !oldestFirst).filter((row) => !after || isBehind(row, after, oldestFirst))
    if (oldestFirst) yield* early
    for (let place = after; ; ) {
      const batch = [...take(this.indexes.merge(cells, from, to, !oldestFirst, place), WALK_BATCH)]
      for (const [, , id] of batch) {
        const row = this.rows.get(id)
        if (row) yield row
      }
      place = batch.at(-1)
      if (batch.length < WALK_BATCH) break
    }
    if (!oldestFirst) yield* early
  }

  inState(state: MediaState): RecordingRow[] {
    return [...this.indexes.inState(state)].flatMap((id) => this.rows.get(id) ?? [])
  }

  /** 0 while there is none. */
  newestId(): number {
    return [...this.rows.keys({ reverse: true, limit: 1 })][0] ?? 0
  }

  /** By id, which grows with time whatever the clock does: the newest first, from `id` on. */
  downFrom(id: number, limit: number): RecordingRow[] {
    return [...this.rows.range({ start: id, reverse: true, limit })].map(({ value }) => value)
  }

  /** By id: the oldest first, behind `id`. */
  upFrom(id: number, limit: number): RecordingRow[] {
    return [...this.rows.range({ start: id + 1, limit })].map(({ value }) => value)
  }

  /** Finished moving pictures without a tag, oldest first: what retention may take. */
  *oldestUntagged(): Generator<RecordingRow> {
    const states = MEDIA_STATES.filter((state) => state !== 'recording')
    for (const row of this.walk({ states, tagged: false }, true)) {
      if (row.tag_markers === 0) yield row
    }
  }

  private scope(filter: WalkFilter): { cells: number[]; from: number; to: number } {
    const { from = 0, to = TIME_LIMIT - 1 } = filter
    return { cells: this.indexes.cells(filter), from: Math.max(0, from), to: Math.min(TIME_LIMIT - 1, to) }
  }

  /** Those that began before the range and reach into it. */
  private early(filter: WalkFilter, cells: readonly number[], from: number, reverse: boolean): RecordingRow[] {
    if (from === 0 || cells.length === 0 || (filter.to ?? from) < from) return []
    const wanted = new Set(cells)
    const ids = new Set(this.indexes.reachingInto(from))
    const rows = [...ids].flatMap((id) => this.rows.get(id) ?? [])
    const reaching = rows.filter((row) => {
      return row.timestamp_start < from && this.endOf(row) >= from && wanted.has(cellOf(row))
    })
    return reaching.sort((a, b) => comparePositions(positionOf(a), positionOf(b)) * (reverse ? -1 : 1))
  }

  /** What is running has no end yet. */
  private endOf(row: RecordingRow): number {
    const past = row.state === 'recording' ? Math.max(row.timestamp_start, this.now()) : row.timestamp_start
    return Math.max(row.timestamp_end, past)
  }

  /** In batches: a crash in between begins anew. */
  private rebuild(): void {
    this.indexes.clear()
    for (let after = 0; ; ) {
      const batch = [...this.rows.range({ start: after + 1, limit: REBUILD_BATCH })]
      this.enterAll(batch.map(({ value }) => value))
      after = batch.at(-1)?.key ?? 0
      if (batch.length < REBUILD_BATCH) return
    }
  }

  /** On a full disk by and by, as far as the room of the database goes. */
  private enterAll(rows: readonly RecordingRow[]): void {
    try {
      this.store.urgent(() => {
        for (const row of rows) this.indexes.change(null, row)
      })
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'INSUFFICIENT_STORAGE') || rows.length < 2) throw error
      const half = Math.ceil(rows.length / 2)
      this.enterAll(rows.slice(0, half))
      this.enterAll(rows.slice(half))
    }
  }
}

function filterOf({ state, ...query }: Omit<ListQuery, 'limit' | 'offset'>): WalkFilter {
  return { types: VIDEO_TYPES, ...query, ...(state === undefined ? {} : { states: [state] }) }
}

/** Of a page over two groups, the part that falls into the group of `size` behind `before` others. */
function share(offset: number, limit: number, before: number, size: number): { skip: number; count: number } {
  const skip = Math.max(0, offset - before)
  const end = Math.min(size, offset + limit - before)
  return { skip, count: Math.max(0, end - skip) }
}

function nextOf(rows: readonly RecordingRow[], more: boolean): Position | null {
  const last = rows.at(-1)
  return more && last ? positionOf(last) : null
}

/** Times are whole milliseconds that the indexes can hold. */
function whole(row: RecordingRow): RecordingRow {
  const time = (value: number) => Math.min(TIME_LIMIT - 1, Math.max(0, Math.trunc(value)))
  return { ...row, timestamp_start: time(row.timestamp_start), timestamp_end: time(row.timestamp_end) }
}

function* take<T>(items: Iterable<T>, count: number): Generator<T> {
  let left = count
  if (left <= 0) return
  for (const item of items) {
    yield item
    if (--left === 0) return
  }
}
