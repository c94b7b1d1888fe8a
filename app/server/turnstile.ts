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

  /** Whose signal is given leaves the row with it, and throws its reason. */
  async pass<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#inside >= this.atOnce) await this.#turn(signal)
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

  #turn(signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.length >= this.waiting) throw this.refusal()
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', leave, { once: true })
      this.#waiting.push(enter)
    })
  }
}
