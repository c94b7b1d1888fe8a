/** Entries that must come about: on a full disk a commit fails, and is tried again, ever less often, until it holds. */
import { backoff } from '../backoff.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import { Told } from '../told.ts'

const FIRST_RETRY_MS = 2000
const LAST_RETRY_MS = 60_000

export class Insistence {
  private readonly timers = new Set<NodeJS.Timeout>()
  private readonly told = new Told()

  constructor(
    private readonly log: Logger,
    private readonly firstRetryMs = FIRST_RETRY_MS,
  ) {}

  /** Undefined: it failed for now, and is tried again while it is `wanted`. Never throws. */
  write<T>(id: number, work: () => T, wanted: () => boolean = () => true): T | undefined {
    return this.attempt(id, work, () => (wanted() ? work() : undefined), 1)
  }

  private attempt<T>(id: number, work: () => T, again: () => unknown, attempt: number): T | undefined {
    try {
      const result = work()
      this.told.over(id)
      return result
    } catch (error) {
      const text = errorText(error)
      if (this.told.isNew(id, text)) this.log.error({ id, error: text }, 'catalogue cannot be written; trying again')
      const timer = setTimeout(
        () => {
          this.timers.delete(timer)
          this.attempt(id, again, again, attempt + 1)
        },
        backoff(attempt, this.firstRetryMs, LAST_RETRY_MS),
      )
      this.timers.add(timer)
      return undefined
    }
  }

  stop(): void {
    for (const timer of this.timers) clearTimeout(timer)
    this.timers.clear()
  }
}
