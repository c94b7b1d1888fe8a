/** Troubles that were told already: what is tried again and again must not fill the log with the same line. */
export class Told {
  private readonly last = new Map<unknown, string>()

  /** Whether `error` is another one than `what` had last. */
  isNew(what: unknown, error: string): boolean {
    const known = this.last.get(what) === error
    this.last.set(what, error)
    return !known
  }

  over(what: unknown): void {
    this.last.delete(what)
  }

  allOver(): void {
    this.last.clear()
  }
}
