/** A request body, collected within bounds of size, time and number. */
import type { HttpResponse } from 'uWebSockets.js'
import { ApiError } from '../errors.ts'

export interface GateLimits {
  /** Bodies that may be on their way at the same time, over all clients and of one. */
  readonly atOnce: number
  readonly perClient: number
}

export interface BodyLimits extends GateLimits {
  readonly bytes: number
  /** From the head of the request to the last byte. */
  readonly deadlineMs: number
}

/** Counts the bodies on their way, over all listeners. */
export class BodyGate<L extends GateLimits = GateLimits> {
  #open = 0
  readonly #clients = new Map<string, number>()

  constructor(readonly limits: L) {}

  enter(client: string): void {
    const own = this.#clients.get(client) ?? 0
    if (this.#open >= this.limits.atOnce || own >= this.limits.perClient) {
      throw new ApiError('SERVICE_UNAVAILABLE', 'Too many requests are being received', 'body', { 'Retry-After': '1' })
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

export function tooLarge(limit: number): ApiError {
  return new ApiError('PAYLOAD_TOO_LARGE', `The body is larger than ${limit} bytes`, `limit ${limit} bytes`)
}

/**
 * Must be made while uWS's handler runs: data that finds no listener is lost. The outcome is asked for later with `whole()`, so that
 * an error of the authentication that runs meanwhile is answered first.
 */
export class BodyCollector {
  #chunks: Buffer[] = []
  #size = 0
  #outcome: Buffer | ApiError | null = null
  #waiting: { resolve: (body: Buffer) => void; reject: (error: ApiError) => void } | null = null
  readonly #timer: NodeJS.Timeout
  readonly #gate: BodyGate<BodyLimits>

  constructor(
    res: HttpResponse,
    gate: BodyGate<BodyLimits>,
    /** Whose share of the gate it takes. */
    readonly client: string,
    readonly maxBytes = gate.limits.bytes,
  ) {
    gate.enter(client)
    this.#gate = gate
    this.#timer = setTimeout(() => {
      this.#settle(new ApiError('INVALID_REQUEST', 'The body took too long', 'body'))
    }, gate.limits.deadlineMs)
    res.onData((chunk, isLast) => this.#receive(chunk, isLast))
  }

  whole(): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      this.#deliver()
    })
  }

  /** The request is over, whatever has come. */
  cancel(): void {
    this.#settle(new ApiError('INVALID_REQUEST', 'The request was aborted', 'body'))
  }

  #receive(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.#outcome !== null) return
    this.#size += chunk.byteLength
    if (this.#size > this.maxBytes) {
      this.#settle(tooLarge(this.maxBytes))
      return
    }
    // uWS takes the memory back when this returns.
    if (chunk.byteLength > 0) this.#chunks.push(Buffer.from(Buffer.from(chunk)))
    if (isLast) this.#settle(this.#chunks.length === 1 && this.#chunks[0] ? this.#chunks[0] : Buffer.concat(this.#chunks))
  }

  #settle(outcome: Buffer | ApiError): void {
    if (this.#outcome !== null) return
    this.#outcome = outcome
    this.#chunks = []
    clearTimeout(this.#timer)
    this.#gate.leave(this.client)
    this.#deliver()
  }

  #deliver(): void {
    if (this.#waiting === null || this.#outcome === null) return
    const { resolve, reject } = this.#waiting
    this.#waiting = null
    if (this.#outcome instanceof ApiError) reject(this.#outcome)
    else resolve(this.#outcome)
  }
}
