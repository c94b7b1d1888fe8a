/** Entries that must come about: on a full disk a commit fails, and is tried again until it holds. */
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'

const RETRY_MS = 2000

export class Insistence {
  private readonly timers = new Set<NodeJS.Timeout>()

  constructor(
    private readonly log: Logger,
    private readonly retryMs = RETRY_MS,
  ) {}

  /** Undefined: it failed for now. Never throws. */
  write<T>(id: number, work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      this.log.error({ id, error: errorText(error) }, 'catalogue cannot be written; trying again')
      const timer = setTimeout(() => {
        this.timers.delete(timer)
        this.write(id, work)
      }, this.retryMs)
      this.timers.add(timer)
      return undefined
    }
  }

  stop(): void {
    for (const timer of this.timers) clearTimeout(timer)
    this.timers.clear()
  }
}
