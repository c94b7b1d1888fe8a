/** How long to wait before the next attempt: doubling, bounded, and spread so that many pages do not come back at the same moment. */
export function backoffMs(attempt: number, longestMs = 10_000, random: () => number = Math.random): number {
  const full = Math.min(longestMs, 500 * 2 ** Math.min(attempt, 10))
  return Math.round(full * (0.75 + random() * 0.25))
}

/** Resolves after `ms`, or at once when aborted. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve()
      return
    }
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
  })
}
