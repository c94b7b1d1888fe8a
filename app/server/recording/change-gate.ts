/** Changes that a recording must not meet: they are refused while one runs or starts, and the next start waits for those under way. */
export class ChangeGate {
  private readonly underWay = new Set<Promise<unknown>>()

  /** The caller has looked, in the same turn of the event loop, that nothing records. One change may be inside another. */
  async hold<T>(change: () => Promise<T>): Promise<T> {
    const running = (async () => change())()
    this.underWay.add(running)
    try {
      return await running
    } finally {
      this.underWay.delete(running)
    }
  }

  /** Calls `mark` when no change is under way, before the next can look. False: there was nothing to wait for. */
  async enter(mark: () => void): Promise<boolean> {
    const waits = this.underWay.size > 0
    while (this.underWay.size > 0) await Promise.allSettled(this.underWay)
    mark()
    return waits
  }
}
