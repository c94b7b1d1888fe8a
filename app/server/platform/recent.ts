/** A reading that is good enough for a second: what the kernel says of the machine costs a system call or more each time. */
const GOOD_FOR_MS = 1000

export class Recent<T> {
  private value: T | undefined
  private readAt = Number.NEGATIVE_INFINITY

  constructor(
    private readonly read: () => T,
    private readonly now: () => number = () => performance.now(),
  ) {}

  get(): T {
    const now = this.now()
    if (now - this.readAt >= GOOD_FOR_MS) {
      this.value = this.read()
      this.readAt = now
    }
    return this.value as T
  }
}
