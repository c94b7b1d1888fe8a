/** Free space while something is recorded: first what may be deleted goes, and only when nothing may any more the recordings end. */
import { ApiError, errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { RecorderOptions } from './options.ts'

/** So much must stay free, so that the database can still commit; of a small disk an eighth. */
const RESERVE_BYTES = 48 * 1024 * 1024
const RESERVE_SHARE = 8
const CHECK_MS = 500

export class SpaceWatch {
  private timer: NodeJS.Timeout | undefined
  private busy = false

  constructor(
    private readonly options: Pick<RecorderOptions, 'space' | 'makeRoom'>,
    private readonly log: Logger,
    /** Ends what runs; false: nothing does, and there is no more to watch. */
    private readonly running: () => boolean,
    private readonly end: (reason: 'disk_full' | 'storage_lost') => void,
  ) {}

  watch(): void {
    this.timer ??= setInterval(() => void this.look(), CHECK_MS)
  }

  stop(): void {
    clearInterval(this.timer)
    this.timer = undefined
  }

  /** Resolves when that much and `margin` more is free, or throws INSUFFICIENT_STORAGE. */
  async demand(bytes: number, margin: number): Promise<void> {
    const needed = bytes + margin
    const missing = () => needed - (this.options.space()?.available ?? 0)
    if (missing() < 0) return
    await this.makeRoom(missing() + 1)
    if (missing() < 0) return
    const available = this.options.space()?.available ?? 0
    this.log.error({ available, needed }, 'start refused: too little free space')
    throw new ApiError(
      'INSUFFICIENT_STORAGE',
      'There is too little free space for this recording',
      `${needed} bytes needed, ${available} free`,
    )
  }

  private async look(): Promise<void> {
    if (!this.running()) return this.stop()
    if (this.busy) return
    this.busy = true
    try {
      if (this.shortage() > 0) await this.makeRoom(this.shortage() + RESERVE_BYTES / RESERVE_SHARE)
      // All of that or nothing goes: less does as well.
      if (this.shortage() > 0) await this.makeRoom(this.shortage())
      if (this.options.space() === null) this.end('storage_lost')
      else if (this.shortage() > 0) this.end('disk_full')
    } finally {
      this.busy = false
    }
  }

  private shortage(): number {
    const space = this.options.space()
    return space ? Math.min(RESERVE_BYTES, space.total / RESERVE_SHARE) - space.available : 0
  }

  private async makeRoom(bytes: number): Promise<void> {
    try {
      await this.options.makeRoom(Math.ceil(bytes))
    } catch (error) {
      this.log.error({ error: errorText(error) }, 'no room could be made')
    }
  }
}
