/**
 * A part of a file on its way to one client. While the kernel takes one chunk, the next one is read; nothing beyond these two is held, so a
 * slow client costs two chunks and nothing else.
 */
import type { FileHandle } from 'node:fs/promises'
import { ApiError } from '../errors.ts'
import type { Exchange, Headers } from './exchange.ts'
import type { HttpLimits } from './limits.ts'

export type StreamLimits = Pick<HttpLimits, 'stallMs' | 'streamSpanMs' | 'streamSpanBytes'>

const CHUNK = 512 * 1024
/** uWS gives up on a client after some ten seconds without an event; a client on a slow link frees its buffer more seldom. */
const RETRY_MS = 4000
/** Chunks kept for the next client. */
const SPARE = 8
const spare: Buffer[] = []
const NOTHING = new Uint8Array(0)

export class FileStream {
  readonly #exchange: Exchange
  readonly #file: FileHandle
  readonly #total: number
  #position: number
  #left: number
  readonly #buffers: Buffer[] = []
  #turn = 0
  /** What the kernel has not taken yet of the chunk, and the offset in the body at which it starts. */
  #pending: Uint8Array = NOTHING
  #pendingAt = 0
  #wake: (() => void) | null = null
  #progressAt = 0
  /** What was left of the chunk when the client was last found quick enough. */
  #span = { at: 0, left: 0 }
  readonly #limits: StreamLimits

  constructor(exchange: Exchange, file: FileHandle, start: number, length: number, limits: StreamLimits) {
    this.#limits = limits
    this.#exchange = exchange
    this.#file = file
    this.#position = start
    this.#left = length
    this.#total = length
  }

  /** Ends when all was handed to the kernel, or when the client has gone. */
  async send(status: number, headers: Headers): Promise<void> {
    const { res } = this.#exchange
    if (this.#exchange.gone) return
    this.#exchange.onAbort(() => this.#resume())
    res.onWritable((offset) => this.#writable(offset))
    let ahead: Promise<Uint8Array> | null = null
    try {
      let chunk = await this.#read()
      // Cut short behind our back: the promised length cannot be kept.
      if (chunk.length === 0) throw new ApiError('FILE_NOT_FOUND', 'The file was cut short while it was read')
      for (let first = true; ; first = false) {
        if (this.#exchange.gone) return
        if (chunk.length === 0) return this.#exchange.abandon()
        this.#pending = chunk
        res.cork(() => {
          if (first) this.#exchange.beginStream(status, headers)
          this.#pendingAt = res.getWriteOffset()
          this.#offer()
        })
        const last = this.#left === 0
        if (!last) {
          ahead = this.#read()
          // Awaited below; until then nobody would, and that ends the process.
          ahead.catch(() => undefined)
        }
        if (this.#pending.length > 0) await this.#taken()
        if (last || ahead === null) break
        chunk = await ahead
        ahead = null
      }
      if (!this.#exchange.gone) this.#exchange.complete()
    } finally {
      // A read that is under way still writes into its buffer.
      await ahead?.catch(() => undefined)
      for (const buffer of this.#buffers.splice(0)) if (spare.length < SPARE) spare.push(buffer)
      this.#pending = NOTHING
    }
  }

  /** The next chunk, into the one of the two buffers that the kernel is not taking from; empty where the file ends too early. */
  async #read(): Promise<Uint8Array> {
    let buffer = this.#buffers[this.#turn]
    if (buffer === undefined) {
      buffer = spare.pop() ?? Buffer.allocUnsafeSlow(CHUNK)
      this.#buffers.push(buffer)
    }
    this.#turn = 1 - this.#turn
    const { bytesRead } = await this.#file.read(buffer, 0, Math.min(CHUNK, this.#left), this.#position)
    this.#position += bytesRead
    this.#left -= bytesRead
    return buffer.subarray(0, bytesRead)
  }

  /** Until the kernel has taken the chunk, or the client has gone. */
  async #taken(): Promise<void> {
    const { stallMs, streamSpanMs } = this.#limits
    this.#progressAt = performance.now()
    this.#span = { at: this.#progressAt, left: this.#pending.length }
    const timer = setInterval(() => this.#retry(), Math.min(RETRY_MS, stallMs / 2, streamSpanMs / 2))
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    clearInterval(timer)
  }

  #writable(offset: number): boolean {
    if (this.#pending.length === 0) return true
    this.#progressAt = performance.now()
    this.#advance(offset)
    this.#offer()
    if (this.#pending.length > 0) return false
    this.#resume()
    return true
  }

  /** The kernel may take a little long before it calls itself writable, and asking keeps the connection alive. */
  #retry(): void {
    const { res, gone } = this.#exchange
    if (gone || this.#pending.length === 0) return
    // What the last offer got rid of must not go out a second time.
    const before = this.#advance(res.getWriteOffset())
    res.cork(() => this.#offer())
    const now = performance.now()
    if (this.#pending.length === 0 || this.#advance(res.getWriteOffset()) || before) this.#progressAt = now
    if (this.#pending.length === 0) this.#resume()
    else if (now - this.#progressAt >= this.#limits.stallMs || this.#tooSlow(now)) this.#exchange.abandon()
  }

  /** Who takes a little now and then would never stall. */
  #tooSlow(now: number): boolean {
    const { at, left } = this.#span
    if (now - at < this.#limits.streamSpanMs) return false
    this.#span = { at: now, left: this.#pending.length }
    return left - this.#pending.length < this.#limits.streamSpanBytes
  }

  /** True where something was taken since the last look. */
  #advance(offset: number): boolean {
    if (offset === this.#pendingAt) return false
    this.#pending = this.#pending.subarray(offset - this.#pendingAt)
    this.#pendingAt = offset
    return true
  }

  #offer(): void {
    const [ok, finished] = this.#exchange.res.tryEnd(this.#pending, this.#total)
    if (ok || finished) this.#pending = NOTHING
  }

  #resume(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }
}
