/**
 * A part of a file on its way to one client. One chunk is read, offered to the socket, and only when the kernel has taken all of it
 * the next is read: a slow client costs its chunk and nothing else.
 */
import type { FileHandle } from 'node:fs/promises'
import { ApiError } from '../errors.ts'
import type { Exchange, Headers } from './exchange.ts'

const CHUNK = 256 * 1024
/** uWS gives up on a client after some ten seconds without an event; a client on a slow link frees its buffer more seldom. */
const RETRY_MS = 4000
/** Chunks kept for the next client. */
const SPARE = 8
const spare: Buffer[] = []

export class FileStream {
  readonly #exchange: Exchange
  readonly #file: FileHandle
  readonly #total: number
  #position: number
  #left: number
  /** What the kernel has not taken yet of the chunk, and the offset in the body at which it starts. */
  #pending: Uint8Array = new Uint8Array(0)
  #pendingAt = 0
  #wake: (() => void) | null = null
  #progressAt = 0
  readonly #stallMs: number

  constructor(exchange: Exchange, file: FileHandle, start: number, length: number, stallMs: number) {
    this.#stallMs = stallMs
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
    const chunk = spare.pop() ?? Buffer.allocUnsafeSlow(CHUNK)
    try {
      for (let first = true; this.#left > 0; first = false) {
        const { bytesRead } = await this.#file.read(chunk, 0, Math.min(CHUNK, this.#left), this.#position)
        if (this.#exchange.gone) return
        if (bytesRead === 0) {
          // Cut short behind our back: the promised length cannot be kept.
          if (first) throw new ApiError('FILE_NOT_FOUND', 'The file was cut short while it was read')
          this.#exchange.abandon()
          return
        }
        this.#position += bytesRead
        this.#left -= bytesRead
        this.#pending = chunk.subarray(0, bytesRead)
        res.cork(() => {
          if (first) this.#exchange.beginStream(status, headers)
          this.#pendingAt = res.getWriteOffset()
          this.#offer()
        })
        if (this.#pending.length > 0) await this.#taken()
        if (this.#exchange.gone) return
      }
      this.#exchange.complete()
    } finally {
      if (spare.length < SPARE) spare.push(chunk)
    }
  }

  /** Until the kernel has taken the chunk, or the client has gone. */
  async #taken(): Promise<void> {
    this.#progressAt = performance.now()
    const timer = setInterval(() => this.#retry(), Math.min(RETRY_MS, this.#stallMs / 2))
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
    res.cork(() => this.#offer())
    if (this.#pending.length > 0 && !this.#advance(res.getWriteOffset())) {
      if (performance.now() - this.#progressAt >= this.#stallMs) this.#exchange.abandon()
      return
    }
    this.#progressAt = performance.now()
    if (this.#pending.length === 0) this.#resume()
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
    if (ok || finished) this.#pending = new Uint8Array(0)
  }

  #resume(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }
}
