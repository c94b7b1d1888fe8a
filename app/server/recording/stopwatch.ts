/** Time that has been recorded: it stands still in pauses, and runs on a clock that never jumps. */
export class Stopwatch {
  private gathered = 0
  private since: number | null
  private stoodStill = 0
  private stoppedAt = 0

  constructor(private readonly now: () => number = () => performance.now()) {
    this.since = now()
  }

  /** Milliseconds that it has run. */
  get ms(): number {
    return this.gathered + (this.since === null ? 0 : this.now() - this.since)
  }

  /** Milliseconds that it has stood still. */
  get pausedMs(): number {
    return this.stoodStill + (this.since === null ? this.now() - this.stoppedAt : 0)
  }

  pause(): void {
    if (this.since === null) return
    this.gathered = this.ms
    this.since = null
    this.stoppedAt = this.now()
  }

  resume(): void {
    if (this.since !== null) return
    this.stoodStill = this.pausedMs
    this.since = this.now()
  }

  /** Counts what was recorded before it was started. */
  add(ms: number): void {
    this.gathered += ms
  }
}
