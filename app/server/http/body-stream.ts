/**
 * A request body that the handler takes as it comes: what does not fit into a few buffers stays with the client. A chunk is good until the
 * next one is asked for; then its buffer is filled again.
 */
import type { HttpResponse } from 'uWebSockets.js'
import { ApiError } from '../errors.ts'
import type { Gate } from './gate.ts'

/** As much as uWS hands over at once. */
const BUFFER = 512 * 1024
/** With this much waiting, the client is told to pause. */
const ENOUGH = BUFFER
/** Buffers kept for the next upload. */
const SPARE = 4
/** uWS cuts clients that are slower than some 16 KiB/s after ten seconds, and those that we let pause; only `resume` starts its clock again. */
const NUDGE_MS = 4000
/** What a client has to bring in each span, however slowly: else it would hold its place for ever. */
const SPAN_MS = 60_000
const SPAN_BYTES = 64 * 1024
const spare: Buffer[] = []

interface Filled {
  readonly buffer: Buffer
  length: number
}

export class BodyStream {
  readonly #res: HttpResponse
  readonly #stallMs: number
  #gate: Gate
  readonly #client: string
  readonly #waiting: Filled[] = []
  #given: Buffer | null = null
  #queued = 0
  #paused = false
  #complete = false
  #failure: ApiError | null = null
  #wake: (() => void) | null = null
  #over = false
  #lastAt: number
  #nudgedAt: number
  #span: { readonly at: number; readonly received: number }
  #timer: NodeJS.Timeout | undefined
  /** Bytes that have come so far. */
  received = 0

  /** Must be made while uWS's handler runs: data that finds no listener is lost. */
  constructor(
    res: HttpResponse,
    gate: Gate,
    client: string,
    stallMs: number,
    /** Called when the last byte has come: the connection can be used again. */
    private readonly arrived: () => void,
  ) {
    gate.enter(client)
    this.#gate = gate
    this.#client = client
    this.#res = res
    this.#stallMs = stallMs
    this.#lastAt = performance.now()
    this.#nudgedAt = this.#lastAt
    this.#span = { at: this.#lastAt, received: 0 }
    res.onData((chunk, isLast) => this.#receive(chunk, isLast))
    this.#pause()
  }

  /** Takes a place among the uploads instead of one among the bodies that are not yet known to be welcome. */
  admit(gate: Gate): void {
    if (this.#over) return
    gate.enter(this.#client)
    this.#gate.leave(this.#client)
    this.#gate = gate
    this.#timer = setInterval(() => this.#watch(), Math.min(1000, this.#stallMs / 2))
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, void> {
    for (;;) {
      this.#giveBack()
      const next = this.#waiting.shift()
      if (next !== undefined) {
        this.#queued -= next.length
        this.#given = next.buffer
        yield next.buffer.subarray(0, next.length)
        continue
      }
      if (this.#failure !== null) throw this.#failure
      if (this.#complete) return
      this.#resume()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** The request is over, whatever has come. */
  cancel(): void {
    if (this.#over) return
    this.#over = true
    this.#failure ??= new ApiError('INVALID_REQUEST', 'The request was aborted', 'body')
    clearInterval(this.#timer)
    this.#gate.leave(this.#client)
    // The buffer that is being read stays the reader's.
    for (const { buffer } of this.#waiting.splice(0)) keep(buffer)
    this.#tell()
  }

  #receive(chunk: ArrayBuffer, isLast: boolean): void {
    this.received += chunk.byteLength
    this.#lastAt = performance.now()
    if (isLast) {
      this.#complete = true
      if (this.#paused) this.#resume()
      this.arrived()
    }
    if (this.#over || this.#failure !== null) return
    this.#store(new Uint8Array(chunk))
    if (!isLast) this.#throttle()
    this.#tell()
  }

  /** uWS takes the memory back when its callback returns. */
  #store(bytes: Uint8Array): void {
    this.#queued += bytes.length
    for (let at = 0; at < bytes.length; ) {
      let last = this.#waiting.at(-1)
      if (last === undefined || last.length === BUFFER) {
        last = { buffer: spare.pop() ?? Buffer.allocUnsafeSlow(BUFFER), length: 0 }
        this.#waiting.push(last)
      }
      const taken = bytes.subarray(at, at + BUFFER - last.length)
      last.buffer.set(taken, last.length)
      last.length += taken.length
      at += taken.length
    }
  }

  #throttle(): void {
    if (this.#queued >= ENOUGH) this.#pause()
    else if (!this.#paused && this.#lastAt - this.#nudgedAt >= NUDGE_MS) this.#nudge(this.#lastAt)
  }

  #pause(): void {
    if (this.#paused) return
    this.#paused = true
    this.#res.pause()
  }

  #resume(): void {
    if (!this.#paused || this.#over) return
    this.#paused = false
    this.#nudgedAt = this.#lastAt = performance.now()
    this.#res.resume()
  }

  /** Starts uWS's clock again; whether we read stays as it is. */
  #nudge(now: number): void {
    this.#nudgedAt = now
    if (!this.#paused) this.#res.pause()
    this.#res.resume()
    if (this.#paused) this.#res.pause()
  }

  #watch(): void {
    const now = performance.now()
    // While we hold the client back, its silence is ours; uWS does not see it like that.
    if (this.#paused) {
      this.#lastAt = now
      if (now - this.#nudgedAt >= NUDGE_MS) this.#nudge(now)
    }
    if (this.#complete || this.#failure !== null) return
    let slow = now - this.#lastAt >= this.#stallMs
    if (now - this.#span.at >= SPAN_MS) {
      slow ||= !this.#paused && this.received - this.#span.received < SPAN_BYTES
      this.#span = { at: now, received: this.received }
    }
    if (!slow) return
    this.#failure = new ApiError('INVALID_REQUEST', 'The body took too long', 'body')
    this.#tell()
  }

  #giveBack(): void {
    if (this.#given !== null) keep(this.#given)
    this.#given = null
  }

  #tell(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }
}

function keep(buffer: Buffer): void {
  if (spare.length < SPARE) spare.push(buffer)
}
