/** Milliseconds to wait after so many failures in a row (from 1): each time twice as long, up to `lastMs`. */
export function backoff(failures: number, firstMs: number, lastMs: number): number {
  return Math.min(lastMs, firstMs * 2 ** Math.max(0, failures - 1))
}
