/** So many at once; those that come meanwhile wait for their turn, but no more of them than are worth waiting for. */
export class Turnstile {
  #inside = 0
  readonly #waiting: (() => void)[] = []

  constructor(
    readonly atOnce: number,
    readonly waiting: number,
    /** What those hear for whom even waiting makes no sense. */
    readonly refusal: () => Error,
  ) {}

  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#inside >= this.atOnce) await this.#turn()
    else this.#inside++
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      // The place is handed over: nobody who comes just now gets in before.
      if (next) next()
      else this.#inside--
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length >= this.waiting) throw this.refusal()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }
}
