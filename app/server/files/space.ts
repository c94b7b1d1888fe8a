/** Room for uploads: what the disk has left, what the quota leaves, and what those under way have been promised. */
import { ApiError } from '../errors.ts'
import type { DeviceStorage } from './storage.ts'
import type { Tree } from './tree.ts'
import { walk } from './walk.ts'

/** Uploads leave this much to the recordings and the database. */
const RESERVE = 64 * 1024 * 1024
/** How often the disk is asked while an upload is written. */
const CHECK_EVERY = 16 * 1024 * 1024
/** So long the sum of all files is good; uploads that end meanwhile are added. */
const GOOD_FOR_MS = 10_000

/** What one upload has been promised, and has written. */
export interface Share {
  /** Null: the client has not said. */
  readonly expected: number | null
  written: number
  checkedAt: number
}

export class Space {
  private readonly shares = new Set<Share>()
  private used: { bytes: number; at: number } | undefined
  private measuring: Promise<void> | undefined

  constructor(
    private readonly storage: DeviceStorage,
    private readonly tree: Tree,
    private readonly quotaBytes: () => number,
  ) {}

  /** Throws INSUFFICIENT_STORAGE before a byte is taken. */
  async admit(expected: number | null): Promise<Share> {
    await this.measure()
    const share = { expected, written: 0, checkedAt: 0 }
    this.checkDisk(expected ?? 0)
    this.checkQuota(expected ?? 0)
    this.shares.add(share)
    return share
  }

  /** Before `bytes` more are written. */
  grow(share: Share, bytes: number): void {
    share.written += bytes
    this.checkQuota(0)
    if (share.written - share.checkedAt < CHECK_EVERY) return
    share.checkedAt = share.written
    const left = this.storage.space()?.available ?? 0
    if (left < RESERVE) throw full(`${left} bytes are free`)
  }

  /** `gained`: by so much all files together have become larger. */
  release(share: Share, gained: number): void {
    if (!this.shares.delete(share)) return
    if (this.used) this.used.bytes += gained
  }

  /** Bytes of all files, as of the last seconds; 0 without a quota. */
  async usedBytes(): Promise<number> {
    await this.measure()
    return this.used?.bytes ?? 0
  }

  /** Files have gone: the sum is not good any more. */
  outdate(): void {
    if (this.used) this.used.at = Number.NEGATIVE_INFINITY
  }

  private checkDisk(needed: number): void {
    const promised = this.sum((share) => Math.max(0, (share.expected ?? 0) - share.written))
    const left = (this.storage.space()?.available ?? 0) - RESERVE - promised
    if (left < needed) throw full(`${needed} bytes needed, ${Math.max(0, left)} free`)
  }

  private checkQuota(more: number): void {
    const quota = this.quotaBytes()
    if (quota === 0 || !this.used) return
    const promised = this.sum((share) => Math.max(share.expected ?? 0, share.written))
    if (this.used.bytes + promised + more > quota) throw full(`quota ${quota} bytes`)
  }

  private sum(of: (share: Share) => number): number {
    let total = 0
    for (const share of this.shares) total += of(share)
    return total
  }

  private async measure(): Promise<void> {
    if (this.quotaBytes() === 0) return
    if (this.used && performance.now() - this.used.at < GOOD_FOR_MS) return
    this.measuring ??= this.measureAll().finally(() => {
      this.measuring = undefined
    })
    await this.measuring
  }

  private async measureAll(): Promise<void> {
    let bytes = 0
    await this.tree.inFolder([], async (root) => {
      for await (const { stats } of walk(root, [], { recursive: true })) if (stats.isFile()) bytes += stats.size
    })
    this.used = { bytes, at: performance.now() }
  }
}

function full(details: string): ApiError {
  return new ApiError('INSUFFICIENT_STORAGE', 'There is too little space for this file', details)
}
