/** Restarts of the device: the answer to the client goes first. */
import type { Component } from '../component.ts'
import { Conflict, errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { SystemAgent } from '../platform/index.ts'

const ANSWER_FIRST_MS = 1000

export class Restart implements Component {
  private timer: NodeJS.Timeout | undefined
  private readonly blocking = new Set<{ readonly reason: string }>()

  constructor(
    private readonly agent: SystemAgent,
    private readonly log: Logger,
    private readonly delayMs = ANSWER_FIRST_MS,
  ) {}

  start(): void {}

  stop(): void {
    clearTimeout(this.timer)
  }

  /** Nothing restarts until the returned function is called: the reason is what clients are told meanwhile. */
  block(reason: string): () => void {
    const blocking = { reason }
    this.blocking.add(blocking)
    return () => void this.blocking.delete(blocking)
  }

  /** Throws CONFLICT while something must not be cut off, or the device is about to restart. */
  check(): void {
    const [first] = this.blocking
    if (first) throw new Conflict(first.reason, 'busy')
    if (this.timer) throw new Conflict('The device is about to restart', 'restart')
  }

  /** A moment from now. */
  soon(why: string): void {
    if (this.timer) return
    this.log.info({ why }, 'the device restarts')
    this.timer = setTimeout(() => void this.go(), this.delayMs)
  }

  private async go(): Promise<void> {
    try {
      await this.agent.ask(['reboot'])
    } catch (error) {
      this.log.error({ error: errorText(error) }, 'the device does not restart')
    } finally {
      this.timer = undefined
    }
  }
}
