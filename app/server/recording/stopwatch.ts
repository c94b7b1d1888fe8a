/** Time that has been recorded: it stands still in pauses, and runs on a clock that never jumps. */
export class Stopwatch {
  private gathered = 0
  private since: number | null = null
  private stoodStill = 0
  private pausedAt: number | null = null

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** It runs from now on, and stands at `ms` already; until then at 0. */
  begin(ms: number): void {
    this.gathered = ms
    this.since = this.now()
  }

  /** Milliseconds that it has run. */
  get ms(): number {
    return this.gathered + (this.since === null ? 0 : this.now() - this.since)
  }

  /** Milliseconds that it has stood still. */
  get pausedMs(): number {
    return this.stoodStill + (this.pausedAt === null ? 0 : this.now() - this.pausedAt)
  }

  pause(): void {
    if (this.since === null) return
    this.gathered = this.ms
    this.since = null
    this.pausedAt = this.now()
  }

  resume(): void {
    if (this.pausedAt === null) return
    this.stoodStill = this.pausedMs
    this.pausedAt = null
    this.since = this.now()
  }
}
