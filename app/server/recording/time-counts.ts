/**
 * How many entries began when: a tree of counters a cell, so that the total of any time range and the place of any offset cost a few reads.
 * A leaf is 2^20 ms (17 minutes) wide; each node holds the counts of its 64 children, and the root reaches to the year 2527.
 */
import type { Store, Table } from '../store/index.ts'

const LEAF_MS = 2 ** 20
const FANOUT = 64
const LEVELS = 4
/** The first moment that the tree does not reach. */
export const TIME_LIMIT = LEAF_MS * FANOUT ** LEVELS

type NodeKey = [level: number, cell: number, index: number]

/** Milliseconds that one child of a node of this level covers. */
function childMs(level: number): number {
  return LEAF_MS * FANOUT ** level
}

export interface Place {
  /** Where to begin to look: in ascending order from here on, in descending order back from here. */
  readonly time: number
  /** How many entries to pass over there. */
  readonly skip: number
}

export class TimeCounts {
  private readonly nodes: Table<NodeKey, readonly number[]>

  constructor(store: Store) {
    this.nodes = store.table('recordings_counts')
  }

  clear(): void {
    this.nodes.clear()
  }

  /** In the transaction of the entry's own change. */
  add(cell: number, time: number, change: 1 | -1): void {
    for (let level = 0; level < LEVELS; level++) {
      const child = Math.floor(time / childMs(level))
      const key: NodeKey = [level, cell, Math.floor(child / FANOUT)]
      const counts = [...(this.nodes.get(key) ?? new Array<number>(FANOUT).fill(0))]
      counts[child % FANOUT] = (counts[child % FANOUT] ?? 0) + change
      if (counts.some((count) => count !== 0)) this.nodes.put(key, counts)
      else this.nodes.remove(key)
    }
  }

  /** All cells that have an entry. */
  cells(): number[] {
    return [...this.nodes.keys({ start: [LEVELS - 1] as never, end: [LEVELS] as never })].map(([, cell]) => cell)
  }

  /** Entries that began in one of the leaves `first` to `last`. */
  sum(cells: readonly number[], first: number, last: number): number {
    let total = 0
    this.visit(cells, first, last, false, (count) => {
      total += count
      return false
    })
    return total
  }

  /** The leaf, among `first` to `last`, that holds the entry number `skip` (from 0); null when there are fewer. */
  locate(cells: readonly number[], first: number, last: number, skip: number, reverse: boolean): Place | null {
    let place: Place | null = null
    let left = skip
    this.visit(cells, first, last, reverse, (count, leaf, width) => {
      if (left >= count) {
        left -= count
        return false
      }
      if (width > 1) return true
      place = { time: leafStart(reverse ? leaf + 1 : leaf) - (reverse ? 1 : 0), skip: left }
      return true
    })
    return place
  }

  /**
   * Shows the widest subtrees that lie within the leaves, in order. Where `look` wants to go deeper it answers true: the subtree's own
   * children follow then; for a single leaf, true ends the visit.
   */
  private visit(
    cells: readonly number[],
    first: number,
    last: number,
    reverse: boolean,
    look: (count: number, leaf: number, width: number) => boolean,
  ): void {
    const descend = (level: number, index: number): boolean => {
      const counts = this.node(level, cells, index)
      if (!counts) return false
      const width = FANOUT ** level
      for (let n = 0; n < FANOUT; n++) {
        const slot = reverse ? FANOUT - 1 - n : n
        const child = index * FANOUT + slot
        const [from, to] = [child * width, (child + 1) * width - 1]
        const count = counts[slot] ?? 0
        if (count === 0 || to < first || from > last) continue
        const whole = from >= first && to <= last
        const deeper = !whole || look(count, from, width)
        if (!deeper) continue
        if (level === 0) return true
        if (descend(level - 1, child)) return true
      }
      return false
    }
    if (first <= last) descend(LEVELS - 1, 0)
  }

  /** The counts of all cells together; undefined when none has any here. */
  private node(level: number, cells: readonly number[], index: number): number[] | undefined {
    let sums: number[] | undefined
    for (const cell of cells) {
      const counts = this.nodes.get([level, cell, index])
      if (!counts) continue
      sums ??= new Array<number>(FANOUT).fill(0)
      for (let slot = 0; slot < FANOUT; slot++) sums[slot] = (sums[slot] ?? 0) + (counts[slot] ?? 0)
    }
    return sums
  }
}

export function leafOf(time: number): number {
  return Math.floor(time / LEAF_MS)
}

export function leafStart(leaf: number): number {
  return leaf * LEAF_MS
}
