/**
 * Waits for the times of a cron expression on a wall clock that may be stepped. The cron library only says which time is next: its own waiting
 * counts through every time that a step passed over, and after a step backwards waits for the time that was due before it.
 */
import cron from 'node-cron'

/** A step that nobody tells of is noticed within this. */
const LONGEST_WAIT_MS = 60_000
/** Up to this a step corrects the clock: what it passes over comes late, what it repeats has been. A longer one begins another time. */
const CORRECTION_MS = 60_000

/** Epoch ms of the next time after now; null: there is none. Throws where `expression` is no cron expression. */
export function nextCronTime(expression: string): number | null {
  const task = cron.createTask(expression, () => undefined)
  try {
    return task.getNextRuns(1)[0]?.getTime() ?? null
  } catch {
    // Such as a 29th that is the first Monday.
    return null
  } finally {
    void task.destroy()
  }
}

export class CronTimer {
  private timer: NodeJS.Timeout | undefined
  private due: number | null = null
  /** The time that was due when it last fired. */
  private fired = Number.NEGATIVE_INFINITY
  /** What the clock showed at the last look. */
  private seen = Number.NEGATIVE_INFINITY

  constructor(
    /** Epoch ms of what is due next; null: never. */
    private readonly nextTime: () => number | null,
    private readonly fire: () => void,
    private readonly wall: () => number = Date.now,
  ) {}

  start(): void {
    this.due = this.nextTime()
    this.look()
  }

  stop(): void {
    clearTimeout(this.timer)
    this.due = null
  }

  get next(): Date | null {
    return this.due === null ? null : new Date(this.due)
  }

  /** Fires at most once, however much has passed; to be called at a step of the clock as well. */
  look(): void {
    clearTimeout(this.timer)
    if (this.due === null) return
    const now = this.wall()
    const { due } = this
    const isDue = now >= due
    if (isDue || now < this.seen) this.due = this.nextTime()
    // What fired in the other time says nothing about this one, though it bears the same date.
    if (this.seen - now > CORRECTION_MS) this.fired = Number.NEGATIVE_INFINITY
    this.seen = now
    this.wait(now)
    const inTime = now - due <= CORRECTION_MS
    const repeated = due <= this.fired && this.fired - due <= CORRECTION_MS
    if (!isDue || !inTime || repeated) return
    this.fired = due
    this.fire()
  }

  private wait(now: number): void {
    if (this.due === null) return
    this.timer = setTimeout(() => this.look(), Math.min(Math.max(this.due - now, 0), LONGEST_WAIT_MS))
    this.timer.unref()
  }
}
