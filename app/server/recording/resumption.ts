/**
 * What the helper's death ended is taken up again when its camera is back in time; what is not, is told. A start that fails is tried again as
 * long as there is time, and a recording that ends each helper soon is taken up ever later. Of a camera that was stopped or set otherwise
 * meanwhile nothing is taken up: it would not be what the user was recording.
 */
import { backoff } from '../backoff.ts'
import type { CameraSettings } from '../cameras/index.ts'
import { ApiError, Conflict, errorText } from '../errors.ts'
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
    private readonly settings: (camera: number) => CameraSettings,
    private readonly times: ResumptionTimes = { withinMs: RESUME_WITHIN_MS, retryMs: RETRY_MS },
  ) {}

  /** The helper died over a recording. A paused one waits for its user, for as long as he takes. */
  expect(slot: Slot, { plan, row, origin, remainingMs, watch, deaths: before, finished }: Active): void {
    if (plan.durationMs > 0 && remainingMs < SHORTEST_MS) return
    const now = performance.now()
    const deaths = watch.ms < STABLE_AFTER_MS ? before + 1 : 1
    const resume: Resume = {
      plan: { ...plan, durationMs: remainingMs, preRollMs: 0 },
      origin,
      row,
      settings: this.settings(slot.camera),
      finished,
      deaths,
      since: now,
      // The first time it is hardly the recording's fault.
      notBefore: deaths === 1 ? now : now + backoff(deaths - 1, this.times.retryMs, LAST_DELAY_MS),
      code: 'CAMERA_NOT_CONNECTED',
      error: '',
    }
    slot.resume = resume
    if (slot.state === 'paused') return
    this.after(this.patience(resume), () => this.giveUp(slot, resume))
  }

  /** The settings of its camera may be others. */
  check(slot: Slot): void {
    const { resume } = slot
    if (!resume || this.isAsSet(resume)) return
    if (this.settings(slot.camera).enabled) resume.code = 'CONFLICT'
    this.giveUp(slot, resume)
  }

  /**
   * To be called in the slot's turn when its camera delivers. Never throws: `begin` is tried again while there is time. The time without a
   * recording counts: a wanted duration ends when it would have ended. So `begin` asks for the plan when all else is ready.
   */
  async attempt(slot: Slot, begin: (resume: Resume, plan: () => RecordingPlan) => Promise<void>): Promise<void> {
    const { resume } = slot
    // A paused one waits for its user.
    if (!resume || slot.active || slot.state === 'paused') return
    const early = resume.notBefore - performance.now()
    if (early > 0) return this.after(early, () => this.due(slot))
    slot.resume = null
    try {
      await begin(resume, () => this.planNow(resume))
    } catch (error) {
      this.failed(slot, resume, error)
    }
  }

  private failed(slot: Slot, resume: Resume, error: unknown): void {
    const text = errorText(error)
    if (text !== resume.error) this.log.error({ id: resume.row.id, error: text }, 'what was recorded cannot go on yet')
    resume.error = text
    resume.code = error instanceof ApiError ? error.code : 'INTERNAL_ERROR'
    // It goes on: what failed came after.
    if (slot.active) return
    slot.resume ??= resume
    const inTime = performance.now() - resume.since < this.patience(resume)
    if (inTime && this.isAsSet(resume)) this.after(this.times.retryMs, () => this.due(slot))
    else this.giveUp(slot, resume)
  }

  private planNow(resume: Resume): RecordingPlan {
    const { plan, row, since } = resume
    if (!this.isAsSet(resume)) throw new Conflict('The camera is set otherwise now', `camera ${row.camera}`)
    const lost = performance.now() - since
    return { ...plan, durationMs: plan.durationMs === 0 ? 0 : Math.max(1, Math.round(plan.durationMs - lost)) }
  }

  private isAsSet({ settings: before, row }: Resume): boolean {
    const now = this.settings(row.camera)
    return (['enabled', 'width', 'height', 'fps', 'audio_codec'] as const).every((key) => now[key] === before[key])
  }

  stop(): void {
    for (const timer of this.timers) clearTimeout(timer)
    this.timers.clear()
  }

  /** How long after the helper's death it may be taken up. */
  private patience({ plan }: Resume): number {
    return plan.durationMs === 0 ? this.times.withinMs : Math.min(this.times.withinMs, plan.durationMs - SHORTEST_MS)
  }

  private giveUp(slot: Slot, resume: Resume): void {
    if (slot.resume !== resume || slot.state === 'paused') return
    slot.resume = null
    const { code, row } = resume
    const { id, camera } = row
    this.log.error({ id, camera, code }, 'recording could not be taken up again')
    this.publish('resume_failed', row, { code })
  }

  private after(ms: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer)
      work()
    }, ms)
    this.timers.add(timer)
  }
}
