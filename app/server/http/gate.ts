/** How many may do the same thing at the same time: over all clients, and of one, so that nobody takes all places. */
import { ApiError } from '../errors.ts'

export interface GateLimits {
  readonly atOnce: number
  readonly perClient: number
}

/** One for all listeners. */
export class Gate<L extends GateLimits = GateLimits> {
  #open = 0
  readonly #clients = new Map<string, number>()

  constructor(
    readonly limits: L,
    /** What those hear who find no place. */
    private readonly refusal = 'Too many requests are being received',
    private readonly details = 'body',
  ) {}

  enter(client: string): void {
    const own = this.#clients.get(client) ?? 0
    if (this.#open >= this.limits.atOnce || own >= this.limits.perClient) {
      throw new ApiError('SERVICE_UNAVAILABLE', this.refusal, this.details, { 'Retry-After': '1' })
    }
    this.#open++
    this.#clients.set(client, own + 1)
  }

  leave(client: string): void {
    this.#open--
    const left = (this.#clients.get(client) ?? 1) - 1
    if (left > 0) this.#clients.set(client, left)
    else this.#clients.delete(client)
  }
}
