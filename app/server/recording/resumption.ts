/** What the helper's death ended is taken up again when its camera is back in time; what is not, is told. */
import { ApiError, errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { RecordingRow } from './row.ts'
import type { Slot } from './slots.ts'

/** A camera that comes back later than this is not what the user was recording any more. */
const RESUME_WITHIN_MS = 60_000

export type Resume = NonNullable<Slot['resume']>

export class Resumption {
  private readonly timers = new Set<NodeJS.Timeout>()

  constructor(
    private readonly log: Logger,
    private readonly publish: (type: string, row: RecordingRow, more: Record<string, unknown>) => void,
    private readonly withinMs = RESUME_WITHIN_MS,
  ) {}

  /** A paused one waits for its user, for as long as he takes. */
  expect(slot: Slot, resume: Resume): void {
    slot.resume = resume
    if (slot.state === 'paused') return
    const timer = setTimeout(() => {
      this.timers.delete(timer)
      if (slot.resume !== resume || slot.state === 'paused') return
      slot.resume = null
      this.tell(resume, 'CAMERA_NOT_CONNECTED')
    }, this.withinMs)
    this.timers.add(timer)
  }

  /** Never throws. */
  async attempt(resume: Resume, begin: () => Promise<void>): Promise<void> {
    try {
      await begin()
    } catch (error) {
      this.log.error({ id: resume.row.id, error: errorText(error) }, 'what was recorded cannot go on')
      this.tell(resume, error instanceof ApiError ? error.code : 'INTERNAL_ERROR')
    }
  }

  stop(): void {
    for (const timer of this.timers) clearTimeout(timer)
    this.timers.clear()
  }

  private tell({ row }: Resume, code: string): void {
    this.log.error({ id: row.id, camera: row.camera, code }, 'recording could not be taken up again')
    this.publish('resume_failed', row, { code })
  }
}
