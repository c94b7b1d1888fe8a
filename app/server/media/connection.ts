/** One connection to the helper: framing, matching answers to requests, notifications. It ends once and is then thrown away. */
import type { Socket } from 'node:net'
import { HELPER_ERROR, HelperDown, HelperError, HelperTimeout, type Methods, type Notifications } from './protocol.ts'

const HEADER_BYTES = 8
const MAX_JSON = 262_144
const MAX_BINARY = 33_554_432
const REQUEST_TIMEOUT_MS = 10_000
/** Finalising waits for the disk, and a worn SD card takes its time; an export copies what was recorded in hours. */
const LONGER_MS: Partial<Record<keyof Methods, number>> = { 'recorder.stop': 60_000, 'media.export': 3_600_000 }
/** Below the helper's own bound, so that a ping always has room. */
const MAX_IN_FLIGHT = 48

interface Pending {
  resolve(answer: { result: unknown; binary: Buffer }): void
  reject(error: Error): void
  timer: NodeJS.Timeout
}

/** A request of the helper: its method and parameters; what it returns is the answer. */
type Answer = (method: string, params: unknown) => Promise<unknown>

type Notify = <N extends keyof Notifications>(name: N, params: Notifications[N]) => void

/** A frame as `PROTOCOL.md` has it: both lengths, the JSON text, the bytes. */
export function encodeFrame(message: unknown): Buffer {
  const json = Buffer.from(JSON.stringify(message))
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt32BE(json.length, 0)
  return Buffer.concat([header, json])
}

/** Collects chunks into frames. Throws when the peer breaks the framing: nothing after that can be believed. */
export class FrameReader {
  private chunks: Buffer[] = []
  private buffered = 0
  private needed = HEADER_BYTES

  push(chunk: Buffer, onFrame: (json: string, binary: Buffer) => void): void {
    this.chunks.push(chunk)
    this.buffered += chunk.length
    while (this.buffered >= this.needed) {
      const data = this.chunks.length === 1 && this.chunks[0] ? this.chunks[0] : Buffer.concat(this.chunks)
      const jsonLength = data.readUInt32BE(0)
      const binaryLength = data.readUInt32BE(4)
      if (jsonLength < 1 || jsonLength > MAX_JSON || binaryLength > MAX_BINARY) throw new Error('frame lengths out of range')
      const total = HEADER_BYTES + jsonLength + binaryLength
      this.chunks = [data]
      this.needed = total
      if (data.length < total) return
      this.chunks = [data.subarray(total)]
      this.buffered = data.length - total
      this.needed = HEADER_BYTES
      onFrame(data.toString('utf8', HEADER_BYTES, HEADER_BYTES + jsonLength), data.subarray(HEADER_BYTES + jsonLength, total))
    }
  }
}

export class Connection {
  private readonly pending = new Map<number, Pending>()
  private readonly reader = new FrameReader()
  private nextId = 1
  private ended = false

  constructor(
    private readonly socket: Socket,
    private readonly notify: Notify,
    private readonly answer: Answer,
    /** Called once, when the connection is of no more use. */
    private readonly onEnd: (why: string) => void,
  ) {
    socket.on('data', (chunk: Buffer) => this.read(chunk))
    socket.on('error', (error) => this.end(error.message))
    socket.on('close', () => this.end('connection closed'))
  }

  async call<M extends keyof Methods>(method: M, params: Methods[M]['params']): Promise<Methods[M]['result']> {
    return (await this.callBinary(method, params, LONGER_MS[method] ?? REQUEST_TIMEOUT_MS)).result
  }

  /** As `call`, with the bytes that came beside the answer. */
  callBinary<M extends keyof Methods>(
    method: M,
    params: Methods[M]['params'],
    timeoutMs = REQUEST_TIMEOUT_MS,
  ): Promise<{ result: Methods[M]['result']; binary: Buffer }> {
    if (this.ended) return Promise.reject(new HelperDown())
    if (this.pending.size >= MAX_IN_FLIGHT && method !== 'helper.ping') {
      return Promise.reject(new HelperError(HELPER_ERROR.busy, 'too many requests at once'))
    }
    const id = this.nextId++
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.pending.delete(id)
        reject(new HelperTimeout(method))
      }, timeoutMs)
      this.pending.set(id, { resolve: resolve as Pending['resolve'], reject, timer })
      this.socket.write(encodeFrame({ jsonrpc: '2.0', id, method, params }))
    })
  }

  /** Ends the connection; the helper takes that as the order to finalise and exit. */
  end(why: string): void {
    if (this.ended) return
    this.ended = true
    this.socket.destroy()
    for (const { reject, timer } of this.pending.values()) {
      clearTimeout(timer)
      reject(new HelperDown())
    }
    this.pending.clear()
    this.onEnd(why)
  }

  private read(chunk: Buffer): void {
    try {
      this.reader.push(chunk, (json, binary) => this.dispatch(json, binary))
    } catch (error) {
      this.end(`protocol error: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  private dispatch(json: string, binary: Buffer): void {
    const message = JSON.parse(json) as {
      id?: number | string | null
      method?: string
      params?: never
      result?: unknown
      error?: { code: number; message: string; data?: { field?: string; errno?: string } }
    }
    if (message.method !== undefined && message.id != null) {
      void this.serve(message.id, message.method, message.params)
      return
    }
    if (message.method !== undefined) {
      this.notify(message.method as keyof Notifications, message.params as never)
      return
    }
    const id = Number(message.id ?? -1)
    const waiting = this.pending.get(id)
    if (!waiting) return
    this.pending.delete(id)
    clearTimeout(waiting.timer)
    if (message.error) waiting.reject(new HelperError(message.error.code, message.error.message, message.error.data))
    else waiting.resolve({ result: message.result, binary })
  }

  private async serve(id: number | string, method: string, params: unknown): Promise<void> {
    const reply = await this.answer(method, params ?? {}).then(
      (result) => ({ result }),
      (error: unknown) => ({ error: errorOf(error) }),
    )
    if (!this.ended) this.socket.write(encodeFrame({ jsonrpc: '2.0', id, ...reply }))
  }
}

function errorOf(error: unknown): { code: number; message: string } {
  if (error instanceof HelperError) return { code: error.code, message: error.message }
  return { code: HELPER_ERROR.internal, message: 'internal error' }
}
