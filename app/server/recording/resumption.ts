/**
 * What the helper's death ended is taken up again when its camera is back in time; what is not, is told. A start that fails is tried again as
 * long as there is time, and a recording that ends each helper soon is taken up ever later.
 */
import { backoff } from '../backoff.ts'
import { ApiError, errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { RecordingPlan } from './plan.ts'
import type { RecordingRow } from './row.ts'
import type { Active, Resume, Slot } from './slots.ts'

/** A camera that comes back later than this is not what the user was recording any more. */
const RESUME_WITHIN_MS = 600_000
/** Less than that is not worth a file. */
const SHORTEST_MS = 1000
const RETRY_MS = 2000
/** One that ran for this long did not kill the helper. */
const STABLE_AFTER_MS = 30_000
const LAST_DELAY_MS = 60_000

export interface ResumptionTimes {
  readonly withinMs: number
  readonly retryMs: number
}

export class Resumption {
  private readonly timers = new Set<NodeJS.Timeout>()

  constructor(
    private readonly log: Logger,
    private readonly publish: (type: string, row: RecordingRow, more: Record<string, unknown>) => void,
    /** It may be the time for `attempt`. */
    private readonly due: (slot: Slot) => void,
    private readonly times: ResumptionTimes = { withinMs: RESUME_WITHIN_MS, retryMs: RETRY_MS },
  ) {}

  /** The helper died over a recording. A paused one waits for its user, for as long as he takes. */
  expect(slot: Slot, { plan, row, origin, remainingMs, watch, deaths: before }: Active): void {
    if (plan.durationMs > 0 && remainingMs < SHORTEST_MS) return
    const now = performance.now()
    const deaths = watch.ms < STABLE_AFTER_MS ? before + 1 : 1
    const resume: Resume = {
      plan: { ...plan, durationMs: remainingMs, preRollMs: 0 },
      origin,
      row,
      deaths,
      since: now,
      // The first time it is hardly the recording's fault.
      notBefore: deaths === 1 ? now : now + backoff(deaths - 1, this.times.retryMs, LAST_DELAY_MS),
    }
    slot.resume = resume
    if (slot.state === 'paused') return
    this.after(this.patience(resume), () => this.giveUp(slot, resume, 'CAMERA_NOT_CONNECTED'))
  }

  /**
   * To be called in the slot's turn when its camera delivers. Never throws: `begin` is tried again while there is time. The time without a
   * recording counts: a wanted duration ends when it would have ended.
   */
  async attempt(slot: Slot, begin: (resume: Resume, plan: RecordingPlan) => Promise<void>): Promise<void> {
    const { resume } = slot
    // A paused one waits for its user.
    if (!resume || slot.active || slot.state === 'paused') return
    const early = resume.notBefore - performance.now()
    if (early > 0) return this.after(early, () => this.due(slot))
    const lost = performance.now() - resume.since
    const durationMs = resume.plan.durationMs === 0 ? 0 : Math.max(1, Math.round(resume.plan.durationMs - lost))
    slot.resume = null
    try {
      await begin(resume, { ...resume.plan, durationMs })
    } catch (error) {
      this.log.error({ id: resume.row.id, error: errorText(error) }, 'what was recorded cannot go on yet')
      slot.resume ??= resume
      if (performance.now() - resume.since < this.patience(resume)) this.after(this.times.retryMs, () => this.due(slot))
      else this.giveUp(slot, resume, error instanceof ApiError ? error.code : 'INTERNAL_ERROR')
    }
  }

  stop(): void {
    for (const timer of this.timers) clearTimeout(timer)
    this.timers.clear()
  }

  /** How long after the helper's death it may be taken up. */
  private patience({ plan }: Resume): number {
    return plan.durationMs === 0 ? this.times.withinMs : Math.min(this.times.withinMs, plan.durationMs - SHORTEST_MS)
  }

  private giveUp(slot: Slot, resume: Resume, code: string): void {
    if (slot.resume !== resume || slot.state === 'paused') return
    slot.resume = null
    const { id, camera } = resume.row
    this.log.error({ id, camera, code }, 'recording could not be taken up again')
    this.publish('resume_failed', resume.row, { code })
  }

  private after(ms: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer)
      work()
    }, ms)
    this.timers.add(timer)
  }
}
