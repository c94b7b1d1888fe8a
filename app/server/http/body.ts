/** A request body, collected within bounds of size, time and number. */
import type { HttpResponse } from 'uWebSockets.js'
import { ApiError } from '../errors.ts'
import type { Gate, GateLimits } from './gate.ts'

export interface BodyLimits extends GateLimits {
  readonly bytes: number
  /** From the head of the request to the last byte. */
  readonly deadlineMs: number
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
  readonly #gate: Gate<BodyLimits>

  constructor(
    res: HttpResponse,
    gate: Gate<BodyLimits>,
    /** Whose share of the gate it takes. */
    readonly client: string,
    readonly maxBytes: number,
    /** Called when the last byte has come: the connection can be used again. */
    private readonly arrived: () => void,
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
    if (isLast) this.arrived()
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
