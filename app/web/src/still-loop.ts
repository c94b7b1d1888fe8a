/**
 * The live picture as stills, one after the other: the next is asked for only when the last is on the screen, about five a second (half of what
 * the server allows an address, so that two people behind one address still see something), and none while nobody looks.
 */
import { ApiFailure, send } from './api.ts'
import { backoffMs, pause } from './backoff.ts'

export type LiveState = 'connecting' | 'live' | 'no-signal' | 'unreachable'

export interface LiveScreen {
  /** Resolves when the picture is shown. */
  show(picture: Blob): Promise<void>
  state(state: LiveState): void
}

const ADDRESS = '/image?quality=70'
const PERIOD_MS = 200
const NO_SIGNAL_RETRY_MS = 1000

export class StillLoop {
  private readonly ending = new AbortController()
  private failures = 0

  constructor(private readonly screen: LiveScreen) {}

  start(): void {
    void this.run(this.ending.signal)
  }

  stop(): void {
    this.ending.abort()
  }

  private async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await visible(signal)
      const began = performance.now()
      const wait = await this.step(signal).catch((error: unknown) => (signal.aborted ? 0 : this.failed(error)))
      await pause(Math.max(wait, PERIOD_MS - (performance.now() - began)), signal)
    }
  }

  /** Resolves with the least time to wait. */
  private async step(signal: AbortSignal): Promise<number> {
    const answer = await send('GET', ADDRESS, { signal })
    await this.screen.show(await answer.blob())
    this.failures = 0
    if (!signal.aborted) this.screen.state('live')
    return 0
  }

  private failed(error: unknown): number {
    const failure = error instanceof ApiFailure ? error : new ApiFailure(0, 'UNREADABLE', 'The picture cannot be shown')
    if (failure.code === 'CAMERA_NOT_CONNECTED') {
      this.screen.state('no-signal')
      return NO_SIGNAL_RETRY_MS
    }
    // Somebody else behind this address looks as well; the last picture may stay.
    if (failure.status === 429) return Math.max(failure.retryAfterMs, 1000)
    this.failures += 1
    // One lost request is no news.
    if (this.failures > 1) this.screen.state('unreachable')
    return Math.max(failure.retryAfterMs, backoffMs(this.failures, 5000))
  }
}

function visible(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const check = () => {
      if (document.hidden && !signal.aborted) return
      document.removeEventListener('visibilitychange', check)
      signal.removeEventListener('abort', check)
      resolve()
    }
    document.addEventListener('visibilitychange', check)
    signal.addEventListener('abort', check)
    check()
  })
}
