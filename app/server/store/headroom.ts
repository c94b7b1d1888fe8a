/**
 * Room of the database's own. LMDB must never meet a full disk: a commit that fails for space damages its heap, and the process dies. So its file is
 * kept some megabytes larger than what is in it, with blocks that are really there, and a change that may not fit into that is refused before
 * LMDB hears of it. What is written to blocks that the file has already needs nothing of the disk, whoever fills it meanwhile.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import type { Database } from 'lmdb'
import { ApiError, errorText, StartupError } from '../errors.ts'
import type { Logger } from '../log.ts'

const MB = 1024 * 1024
/** What is kept allocated behind the last page in use. */
const ROOM_BYTES = 6 * MB
/** Of that, for what must go on while the disk is full: removing, and ending what runs. */
const URGENT_BYTES = 3 * MB
const RETRY_MS = 2000
/** The file grows, and is looked through, by so much at a time. */
const STEP = Buffer.alloc(MB / 4)
/** Blocks of the file system are no smaller. */
const BLOCK_BYTES = 4096
/** What LMDB maps to write into, whatever the disk can give: without blocks the first touch would kill the process. */
const LOCK_BYTES = 12_288

/** Pages of the tree from its root to a leaf, and one that a full leaf is split into. */
const PAGES_AN_ENTRY = 4
/** Every transaction's: the tables' roots and the list of free pages. */
const PAGES_A_TRANSACTION = 32
/** Key and headers of an entry. */
const ENTRY_BYTES = 128
/** Pages are a third full at least. */
const SPARSENESS = 3

/** What lmdb tells of a table and of the file, in pages of `pageSize` bytes; its types leave it out. */
interface Stats {
  readonly pageSize: number
  readonly treeBranchPageCount: number
  readonly treeLeafPageCount: number
  readonly overflowPages: number
  readonly lastPageNumber: number
  readonly free: Pick<Stats, 'treeBranchPageCount' | 'treeLeafPageCount' | 'overflowPages'>
}

/** What lmdb's tables have in common, whatever is in them. */
export type AnyTable = Pick<Database<never, never>, 'getStats'>

interface Touched {
  entries: number
  readonly pages: number
}

/** What a transaction may come to need: it copies each page that it changes. An upper bound. */
export class Demand {
  private readonly tables = new Map<AnyTable, Touched>()
  private inserted = 0
  private first: Stats | undefined

  constructor(
    /** May use the last of the room. */
    readonly urgent: boolean,
  ) {}

  /** One more entry of `table` is written, with so many bytes of value, or removed (0). */
  add(table: AnyTable, bytes: number): void {
    const touched = this.tables.get(table) ?? this.meet(table)
    touched.entries++
    if (bytes > 0) this.inserted += bytes + ENTRY_BYTES
  }

  /** All of `table` is removed: its pages are noted as free ones, eight bytes each. */
  clear(table: AnyTable): void {
    this.add(table, 0)
    this.inserted += (this.tables.get(table)?.pages ?? 0) * 8
  }

  /** Bytes behind the last page in use. */
  get bytes(): number {
    const { pageSize, free } = this.stats
    let pages = PAGES_A_TRANSACTION + 2 * pagesOf(free)
    for (const { entries, pages: all } of this.tables.values()) pages += Math.min(entries * PAGES_AN_ENTRY, all + 1)
    return pages * pageSize + this.inserted * SPARSENESS
  }

  /** Bytes that are in use as long as the transaction is not committed. */
  get used(): number {
    return endOf(this.stats)
  }

  private get stats(): Stats {
    if (!this.first) throw new Error('nothing is demanded yet')
    return this.first
  }

  private meet(table: AnyTable): Touched {
    const stats = table.getStats() as Stats
    this.first ??= stats
    const touched = { entries: 0, pages: pagesOf(stats) }
    this.tables.set(table, touched)
    return touched
  }
}

function pagesOf(stats: Stats['free']): number {
  return stats.treeBranchPageCount + stats.treeLeafPageCount + stats.overflowPages
}

function endOf({ lastPageNumber, pageSize }: Stats): number {
  return (lastPageNumber + 1) * pageSize
}

/** Bytes of the file up to the last page in use, of which every table tells. */
export function usedBytes(table: AnyTable): number {
  return endOf(table.getStats() as Stats)
}

export class Headroom {
  private readonly fd: number
  /** So many bytes from the file's beginning have blocks. */
  private solid: number
  private full = false
  /** What the file system said last. */
  private why = ''
  private timer: NodeJS.Timeout | undefined
  private cutting: NodeJS.Immediate | undefined
  private closed = false

  constructor(
    file: string,
    private readonly root: AnyTable,
    private readonly log: Logger,
    /** Told when writing begins to be refused, and when it is not any more. */
    private readonly onFull: (full: boolean) => void = () => {},
  ) {
    this.fd = openSync(file, 'r+')
    this.cut()
    const { size, blocks } = fstatSync(this.fd)
    this.solid = blocks * 512 < size ? 0 : size
    this.grow(this.usualSize())
  }

  close(): void {
    this.closed = true
    clearTimeout(this.timer)
    clearImmediate(this.cutting)
    closeSync(this.fd)
  }

  get isFull(): boolean {
    return this.full
  }

  /** Throws INSUFFICIENT_STORAGE unless there is room for all of `demand`. `removing`: what it was asked for last makes the database smaller. */
  require(demand: Demand, removing: boolean): void {
    const last = demand.urgent || removing
    const needed = demand.used + demand.bytes + (last ? 0 : URGENT_BYTES)
    if (this.solid >= needed && (last || !this.full)) return
    const whole = this.grow(demand.used + ROOM_BYTES)
    if (this.solid >= needed && (last || whole)) return
    // More than the usual room is for a large transaction alone: where the disk cannot give it, others must not go without.
    if (whole && this.growTo(needed)) {
      this.cutting ??= setImmediate(() => this.cut())
      return
    }
    if (!whole && !last) this.setFull(true)
    throw new ApiError('INSUFFICIENT_STORAGE', 'The disk is too full: this cannot be stored', 'database')
  }

  /** To the usual room, as far as the disk goes, and whether that was far enough; what it does not give now is asked for again and again. */
  private grow(size: number): boolean {
    const whole = this.growTo(size, true)
    if (whole) this.setFull(false)
    else this.timer ??= setTimeout(() => this.retry(), RETRY_MS).unref()
    return whole
  }

  private growTo(size: number, keepsPart = false): boolean {
    // LMDB itself has written behind our end where less was demanded than it took: that must not be written over.
    const end = fstatSync(this.fd).size
    try {
      this.fillGaps(end)
      while (this.solid < size) this.solid += writeSync(this.fd, STEP, 0, Math.min(STEP.length, size - this.solid), this.solid)
      return true
    } catch (error) {
      this.why = errorText(error)
      if (!keepsPart) this.shortenTo(end)
      return false
    }
  }

  /** What a large transaction needed is given back. Runs between transactions: nothing behind the last committed page is LMDB's. */
  private cut(): void {
    this.cutting = undefined
    try {
      this.shortenTo(this.usualSize())
    } catch (error) {
      this.log.warn({ error: errorText(error) }, 'the database file cannot be shortened')
    }
  }

  private shortenTo(size: number): void {
    if (fstatSync(this.fd).size <= size) return
    ftruncateSync(this.fd, size)
    this.solid = Math.min(this.solid, size)
  }

  private usualSize(): number {
    return usedBytes(this.root) + ROOM_BYTES
  }

  private retry(): void {
    this.timer = undefined
    this.grow(this.usualSize())
  }

  private setFull(full: boolean): void {
    if (full === this.full) return
    this.full = full
    if (full) this.log.error({ error: this.why }, 'the disk is full: nothing is stored but the end of recordings, and deleting')
    else this.log.warn('there is space on the disk again: everything is stored')
    setImmediate(() => this.tell(full))
  }

  /** Outside the transaction that may be open: whoever hears of it may write, or fail. */
  private tell(full: boolean): void {
    if (this.closed) return
    try {
      this.onFull(full)
    } catch (error) {
      this.log.error({ full, error: errorText(error) }, 'that the disk is full, or not any more, could not be told')
    }
  }

  /**
   * Up to `end`. There are gaps where pages were given up before they were written, by an older release, or behind our end; a page of zeros stays one.
   * Throws where the disk is full: until it is not, nothing counts as room that lies behind the first gap.
   */
  private fillGaps(end: number): void {
    const step = Buffer.alloc(STEP.length)
    for (let at = this.solid - (this.solid % BLOCK_BYTES); this.solid < end; at = this.solid) {
      const read = readSync(this.fd, step, 0, Math.min(step.length, end - at), at)
      for (let from = 0; from < read; from += BLOCK_BYTES) {
        const length = Math.min(BLOCK_BYTES, read - from)
        if (step.subarray(from, from + length).equals(STEP.subarray(0, length))) writeZeros(this.fd, length, at + from)
      }
      this.solid = at + read
    }
  }
}

function writeZeros(fd: number, bytes: number, at: number): void {
  for (let done = 0; done < bytes; ) done += writeSync(fd, STEP, 0, bytes - done, at + done)
}

/** To be called before LMDB opens the file: gives blocks to the table of its readers. Throws a `StartupError` where the disk has none. */
export function allocateLock(database: string): void {
  const lock = `${database}-lock`
  const fd = openSync(lock, constants.O_RDWR | constants.O_CREAT, 0o600)
  try {
    // Nobody else has the database open: what was in it is of no use any more.
    if (fstatSync(fd).blocks * 512 < LOCK_BYTES) writeZeros(fd, LOCK_BYTES, 0)
  } catch (error) {
    throw new StartupError(`the disk has no ${LOCK_BYTES} bytes for ${lock}: ${errorText(error)}`)
  } finally {
    closeSync(fd)
  }
}
