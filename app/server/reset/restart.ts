/** Restarts of the device: the answer to the client goes first. One that fails is told to whoever listens to alerts, and tried again a few times. */
import { actingAsDevice } from '../actor.ts'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { Conflict, errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { SystemAgent } from '../platform/index.ts'

const ANSWER_FIRST_MS = 1000
const RETRY_AFTER_MS = [10_000, 30_000, 60_000, 300_000]

export interface RestartOptions {
  readonly delayMs?: number
  /** The pauses before further attempts. */
  readonly retryAfterMs?: readonly number[]
}

interface Wanted {
  readonly why: string
  readonly givenUp: () => void
}

export class Restart implements Component {
  private timer: NodeJS.Timeout | undefined
  private stopped = false
  private readonly blocking = new Set<{ readonly reason: string }>()

  constructor(
    private readonly agent: SystemAgent,
    private readonly bus: Bus,
    private readonly log: Logger,
    private readonly options: RestartOptions = {},
  ) {}

  start(): void {}

  stop(): void {
    this.stopped = true
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

  /** A moment from now; `givenUp` is called when the last attempt has failed. */
  soon(why: string, givenUp = () => {}): void {
    if (this.timer) return
    this.log.info({ why }, 'the device restarts')
    const { delayMs = ANSWER_FIRST_MS, retryAfterMs = RETRY_AFTER_MS } = this.options
    actingAsDevice(() => this.after(delayMs, { why, givenUp }, retryAfterMs))
  }

  private after(ms: number, wanted: Wanted, pauses: readonly number[]): void {
    this.timer = setTimeout(() => void this.go(wanted, pauses), ms)
  }

  private async go(wanted: Wanted, [pause, ...pauses]: readonly number[]): Promise<void> {
    const { why, givenUp } = wanted
    try {
      await this.agent.ask(['reboot'])
      this.timer = undefined
    } catch (error) {
      if (this.stopped) return
      const retry_in_seconds = pause === undefined ? null : pause / 1000
      this.log.error({ why, error: errorText(error), retry_in_seconds }, 'the device does not restart')
      this.bus.publish('alert', 'restart_failed', { why, error: errorText(error), retry_in_seconds })
      if (pause !== undefined) return this.after(pause, wanted, pauses)
      this.timer = undefined
      givenUp()
    }
  }
}
