/** Tells systemd how the service stands: ready, alive, ending. Where nobody listens (no `NOTIFY_SOCKET`) it does nothing. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Component } from '../component.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'

const run = promisify(execFile)
const TOLD_WITHIN_MS = 10_000
/** The end of the server waits no longer for its announcement. */
const STOP_PATIENCE_MS = 300
/** Of the watchdog's time: two words may get lost. */
const SHARE = 3

export interface NotifyOptions {
  readonly env?: NodeJS.ProcessEnv
  /** The command that sends; takes assignments such as `READY=1`. */
  readonly command?: string
}

export class Notify implements Component {
  private readonly env: NodeJS.ProcessEnv
  private readonly command: string
  private timer: NodeJS.Timeout | undefined
  private busy = false

  constructor(
    private readonly log: Logger,
    /** Whether the server does its work: a word to the watchdog is sent only then. */
    private readonly alive: () => Promise<boolean>,
    options: NotifyOptions = {},
  ) {
    this.env = options.env ?? process.env
    this.command = options.command ?? 'systemd-notify'
  }

  async start(): Promise<void> {
    if (!this.env.NOTIFY_SOCKET) return
    await this.tell('READY=1', TOLD_WITHIN_MS)
    const every = watchdogEvery(this.env)
    if (every !== null) this.timer = setInterval(() => void this.feed(every * SHARE), every)
  }

  async stop(): Promise<void> {
    clearInterval(this.timer)
    if (this.env.NOTIFY_SOCKET) await this.tell('STOPPING=1', STOP_PATIENCE_MS)
  }

  /** One at a time: where the last one hangs, another would not help, and the silence is what the watchdog is for. */
  private async feed(limitMs: number): Promise<void> {
    if (this.busy) return
    this.busy = true
    try {
      if (await this.alive()) await this.tell('WATCHDOG=1', limitMs)
      else this.log.warn('the server does not answer itself: the watchdog is not fed')
    } finally {
      this.busy = false
    }
  }

  private async tell(state: string, timeout: number): Promise<void> {
    try {
      await run(this.command, [state], { env: this.env, timeout })
    } catch (error) {
      this.log.warn({ state, error: errorText(error) }, 'systemd was not told')
    }
  }
}

/** Milliseconds from one word to the next; null where no watchdog waits for this process. */
function watchdogEvery({ WATCHDOG_USEC, WATCHDOG_PID }: NodeJS.ProcessEnv): number | null {
  const microseconds = Number(WATCHDOG_USEC)
  if (!Number.isFinite(microseconds) || microseconds <= 0) return null
  if (WATCHDOG_PID && WATCHDOG_PID !== String(process.pid)) return null
  return Math.max(1, microseconds / 1000 / SHARE)
}
