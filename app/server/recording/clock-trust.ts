/** Whether the date may decide what is old. A date that is a year ahead would make every recording old. */
import type { Clock } from '../platform/index.ts'
import type { Store } from '../store/index.ts'

const DAY_MS = 86_400_000

export class ClockTrust {
  /** Since when (monotonic) a leap that nobody vouches for has held. */
  private leapSince: number | undefined

  constructor(
    private readonly store: Store,
    private readonly clock: Clock,
  ) {}

  /**
   * Never before the clock is synchronised. Where a time server vouches for it, at once; where the time is only plausible, a leap of more than
   * a day beyond the last date that was believed must first hold for a day of running.
   */
  believes(): boolean {
    if (!this.clock.synchronised) return false
    const now = this.clock.now().getTime()
    const meta = this.store.table<string, number>('meta')
    const last = meta.get('believed_time')
    if (!this.clock.certain && last !== undefined && now > last + DAY_MS) {
      this.leapSince ??= this.clock.monotonic()
      if (this.clock.monotonic() - this.leapSince < DAY_MS) return false
    }
    this.leapSince = undefined
    this.store.urgent(() => meta.put('believed_time', now))
    return true
  }
}
