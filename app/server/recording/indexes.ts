/** The catalogue's indexes: kept with each row, in the row's transaction, and walked in time order. */
import { createHash } from 'node:crypto'
import type { Store, Table } from '../store/index.ts'
import { type CellFilter, cellMatches, cellOf } from './cells.ts'
import type { MediaState, RecordingRow } from './row.ts'
import { leafOf, leafStart, TIME_LIMIT, TimeCounts } from './time-counts.ts'

/** Where an entry stands in the order of time. */
export type Position = readonly [start: number, end: number, id: number]

type CellKey = [cell: number, start: number, end: number, id: number]
type LongKey = [exponent: number, start: number, end: number, id: number]

/** Entries of at least 2^16 ms are filed by the power of two of their length, so that those that reach into a moment are few to look at. */
const LONG_EXPONENT = 16
const LAST_EXPONENT = 44
/** What LMDB takes as a key, with room. */
const MAX_KEY_BYTES = 1000

/** Entries that touch `from` … `to`, both inclusive, epoch milliseconds. */
export interface WalkFilter extends CellFilter {
  readonly from?: number
  readonly to?: number
}

export class CatalogueIndexes {
  private readonly byTime: Table<[start: number, end: number, id: number], true>
  private readonly byState: Table<[state: MediaState, id: number], true>
  private readonly byCell: Table<CellKey, true>
  private readonly long: Table<LongKey, true>
  private readonly paths: Table<string, number>
  private readonly counts: TimeCounts

  constructor(store: Store) {
    this.byTime = store.table('recordings_by_time')
    this.byState = store.table('recordings_by_state')
    this.byCell = store.table('recordings_by_cell')
    this.long = store.table('recordings_long')
    this.paths = store.table('recordings_by_path')
    this.counts = new TimeCounts(store)
  }

  /** From one version of a row to the next; null: there is none. Only what differs is written. */
  change(before: RecordingRow | null, after: RecordingRow | null): void {
    const moved = before?.timestamp_start !== after?.timestamp_start || before?.timestamp_end !== after?.timestamp_end
    const [oldCell, newCell] = [before && cellOf(before), after && cellOf(after)]
    if (before) this.takeOut(before, oldCell ?? 0, moved, after)
    if (after) this.putIn(after, newCell ?? 0, moved, before)
    if (oldCell === newCell && before?.timestamp_start === after?.timestamp_start) return
    if (before) this.counts.add(oldCell ?? 0, before.timestamp_start, -1)
    if (after) this.counts.add(newCell ?? 0, after.timestamp_start, 1)
  }

  clear(): void {
    for (const table of [this.byTime, this.byState, this.byCell, this.long, this.paths, this.counts]) table.clear()
  }

  idOfPath(path: string): number | undefined {
    return this.paths.get(pathKey(path))
  }

  *inState(state: MediaState): Generator<number> {
    const keys = this.byState.keys({ start: [state, 0], end: [state, Number.MAX_SAFE_INTEGER] })
    for (const [, id] of keys) yield id
  }

  cells(filter: CellFilter): number[] {
    return this.counts.cells().filter((cell) => cellMatches(cell, filter))
  }

  /** How many began within `from` … `to`. */
  count(cells: readonly number[], from: number, to: number): number {
    if (from > to || cells.length === 0) return 0
    const [first, last] = [leafOf(from), leafOf(to)]
    if (first === last) return this.countKeys(cells, from, to)
    // Whole leaves are known; the two at the ends are counted.
    const begins = leafStart(first) === from
    const ends = leafStart(last + 1) - 1 === to
    return (
      (begins ? 0 : this.countKeys(cells, from, leafStart(first + 1) - 1)) +
      this.counts.sum(cells, begins ? first : first + 1, ends ? last : last - 1) +
      (ends ? 0 : this.countKeys(cells, leafStart(last), to))
    )
  }

  /** Those that began within `from` … `to`, from number `skip` on. */
  *page(cells: readonly number[], from: number, to: number, skip: number, reverse: boolean): Generator<Position> {
    if (from > to || cells.length === 0) return
    const [first, last] = [leafOf(from), leafOf(to)]
    let left = skip
    let [low, high] = [from, to]
    const edge = reverse ? Math.max(from, leafStart(last)) : Math.min(to, leafStart(first + 1) - 1)
    const atEdge = left === 0 ? 0 : reverse ? this.countKeys(cells, edge, to) : this.countKeys(cells, from, edge)
    if (left > 0 && left >= atEdge) {
      left -= atEdge
      const [inner, outer] = reverse ? [first, last - 1] : [first + 1, last]
      const place = this.counts.locate(cells, inner, outer, left, reverse)
      if (!place) return
      left = place.skip
      if (reverse) high = Math.min(high, place.time)
      else low = Math.max(low, place.time)
    }
    for (const position of this.merge(cells, low, high, reverse)) {
      if (left-- <= 0) yield position
    }
  }

  /** Those that began within `from` … `to`, in order, behind `after`. */
  *merge(cells: readonly number[], from: number, to: number, reverse: boolean, after?: Position): Generator<Position> {
    const heads = cells.map((cell) => {
      const keys = this.byCell.keys(cellRange(cell, from, to, reverse, after))[Symbol.iterator]()
      return { keys, next: keys.next() }
    })
    try {
      for (let live = heads.filter(({ next }) => !next.done); live.length > 0; live = live.filter(({ next }) => !next.done)) {
        let best = live[0] as (typeof live)[number]
        for (const head of live) {
          if (comparePositions(positionOfKey(head.next.value), positionOfKey(best.next.value)) < 0 !== reverse) best = head
        }
        yield positionOfKey(best.next.value)
        best.next = best.keys.next()
      }
    } finally {
      for (const { keys, next } of heads) if (!next.done) keys.return?.()
    }
  }

  /** Those that began before a moment and lasted until it or longer, unordered; what is running has no end yet. */
  *reachingInto(moment: number): Generator<number> {
    if (moment <= 0) return
    const shortest = 2 ** LONG_EXPONENT
    for (const [, end, id] of this.byTime.keys({ start: [Math.max(0, moment - shortest)] as never, end: [moment] as never })) {
      if (end >= moment) yield id
    }
    for (let exponent = LONG_EXPONENT; exponent <= LAST_EXPONENT; exponent++) {
      const earliest = Math.max(0, moment - 2 ** (exponent + 1))
      const range = { start: [exponent, earliest] as never, end: [exponent, Math.min(moment, TIME_LIMIT)] as never }
      for (const [, start, end, id] of this.long.keys(range)) {
        if (end >= moment && start < moment - shortest) yield id
      }
    }
    yield* this.inState('recording')
  }

  private countKeys(cells: readonly number[], from: number, to: number): number {
    return cells.reduce((sum, cell) => sum + this.byCell.count(cellRange(cell, from, to, false)), 0)
  }

  private takeOut(row: RecordingRow, cell: number, moved: boolean, next: RecordingRow | null): void {
    const { timestamp_start: start, timestamp_end: end, id } = row
    if (moved || !next) {
      this.byTime.remove([start, end, id])
      const exponent = exponentOf(row)
      if (exponent >= LONG_EXPONENT) this.long.remove([exponent, start, end, id])
    }
    if (moved || !next || cellOf(next) !== cell) this.byCell.remove([cell, start, end, id])
    if (next?.state !== row.state) this.byState.remove([row.state, id])
    const kept = new Set(next?.parts.map(({ path }) => path))
    for (const { path } of row.parts) if (!kept.has(path)) this.paths.remove(pathKey(path))
  }

  private putIn(row: RecordingRow, cell: number, moved: boolean, before: RecordingRow | null): void {
    const { timestamp_start: start, timestamp_end: end, id } = row
    if (moved || !before) {
      this.byTime.put([start, end, id], true)
      const exponent = exponentOf(row)
      if (exponent >= LONG_EXPONENT) this.long.put([exponent, start, end, id], true)
    }
    if (moved || !before || cellOf(before) !== cell) this.byCell.put([cell, start, end, id], true)
    if (before?.state !== row.state) this.byState.put([row.state, id], true)
    const known = new Set(before?.parts.map(({ path }) => path))
    for (const { path } of row.parts) if (!known.has(path)) this.paths.put(pathKey(path), id)
  }
}

export function positionOf(row: RecordingRow): Position {
  return [row.timestamp_start, row.timestamp_end, row.id]
}

export function comparePositions(a: Position, b: Position): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2]
}

export function isBehind(row: RecordingRow, place: Position, oldestFirst: boolean): boolean {
  const order = comparePositions(positionOf(row), place)
  return oldestFirst ? order > 0 : order < 0
}

function positionOfKey([, start, end, id]: CellKey): Position {
  return [start, end, id]
}

/** Ranges of LMDB include their start and exclude their end; a key that is the beginning of another sorts before it. */
function cellRange(cell: number, from: number, to: number, reverse: boolean, after?: Position) {
  const low = [cell, from]
  const high = [cell, to + 1]
  const inside = after && (reverse ? after[0] <= to : after[0] >= from)
  const behind = inside ? [cell, after[0], after[1], after[2] + (reverse ? -1 : 1)] : undefined
  const range = reverse ? { start: behind ?? high, end: low, reverse } : { start: behind ?? low, end: high }
  return range as { start: CellKey; end: CellKey; reverse?: boolean }
}

function exponentOf(row: RecordingRow): number {
  const length = row.timestamp_end - row.timestamp_start
  return length < 1 ? 0 : Math.min(LAST_EXPONENT, Math.floor(Math.log2(length)))
}

function pathKey(path: string): string {
  return Buffer.byteLength(path) <= MAX_KEY_BYTES ? path : createHash('sha256').update(path).digest('hex')
}
