/**
 * Tells the system that this release is good, once it has shown that it is: until then the boot loader falls back to the one before. Each check
 * is repeated until all have passed in one go.
 */
import type { Component } from '../component.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { SystemAgent } from '../platform/index.ts'

/** What is missing; null: nothing. What it throws is missing too. */
export type Check = () => Promise<string | null>

export interface ConfirmationOptions {
  readonly firstMs?: number
  /** Each time half as long again, up to this. */
  readonly mostMs?: number
}

const GROWTH = 1.5
/** A very slow machine takes long to start the programs that talk to the boot loader. */
const TAKEN_WITHIN_MS = 60_000

export class Confirmation implements Component {
  private readonly ending = new AbortController()
  private timer: NodeJS.Timeout | undefined
  private delayMs: number
  private done = false
  private missing: string | null = null
  private running: Promise<void> = Promise.resolve()

  constructor(
    private readonly agent: SystemAgent,
    private readonly checks: readonly Check[],
    private readonly log: Logger,
    private readonly options: ConfirmationOptions = {},
    /** The system has taken it. Where this fails, all is tried again. */
    private readonly onTaken: () => void = () => {},
  ) {
    this.delayMs = options.firstMs ?? 1000
  }

  start(): void {
    if (this.agent.available) this.next(0)
  }

  async stop(): Promise<void> {
    this.ending.abort(new Error('the server is ending'))
    clearTimeout(this.timer)
    await this.running
  }

  /** Since the start of this server. */
  get confirmed(): boolean {
    return this.done
  }

  /** What it still waits for. */
  get waitingFor(): string | null {
    return this.missing
  }

  private next(delayMs: number): void {
    this.timer = setTimeout(() => {
      this.running = this.attempt()
    }, delayMs)
  }

  private async attempt(): Promise<void> {
    const missing = await this.whatIsMissing()
    if (this.ending.signal.aborted) return
    if (missing !== null && missing !== this.missing) this.log.info({ missing }, 'this release is not confirmed yet')
    this.missing = missing
    this.done = missing === null
    if (this.done) {
      this.log.info('this release is confirmed')
      return
    }
    this.next(this.delayMs)
    this.delayMs = Math.min(this.options.mostMs ?? 5000, this.delayMs * GROWTH)
  }

  private async whatIsMissing(): Promise<string | null> {
    try {
      for (const check of this.checks) {
        const missing = await check()
        if (missing !== null) return missing
      }
      await this.agent.ask(['healthy'], { signal: this.ending.signal, timeoutMs: TAKEN_WITHIN_MS })
      this.onTaken()
      return null
    } catch (error) {
      return errorText(error)
    }
  }
}
