/** Reading from other servers: bounded in size and time, certificates checked, no redirection from HTTPS back to HTTP, wherever in a row of them. */
import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { ApiError, errorText } from '../errors.ts'
import { full } from '../files/index.ts'
import { httpUrl } from './address.ts'
import { createBundle } from './shelf.ts'

/** With nothing new for so long a download is given up. */
const STALL_MS = 30_000
const MAX_REDIRECTIONS = 5
const REDIRECTIONS = [301, 302, 303, 307, 308]

export interface ReadOptions {
  readonly maxBytes: number
  readonly patienceMs: number
  readonly signal?: AbortSignal
}

/** The text behind `url`, and where redirections have led. */
export async function readText(
  url: string,
  { maxBytes, patienceMs, signal }: ReadOptions,
): Promise<{ text: string; from: string }> {
  const limit = AbortSignal.timeout(patienceMs)
  const response = await ask(url, signal ? AbortSignal.any([limit, signal]) : limit)
  const chunks: Uint8Array[] = []
  let size = 0
  await reading(url, async () => {
    for await (const chunk of chunksOf(response)) {
      size += chunk.length
      if (size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`)
      chunks.push(chunk)
    }
  })
  return { text: Buffer.concat(chunks).toString('utf8'), from: response.url }
}

export interface Wanted {
  readonly url: string
  readonly size_bytes: number
  readonly sha256: string
}

export interface DownloadOptions {
  readonly signal: AbortSignal
  /** From 0 to 1. */
  readonly progress: (fraction: number) => void
  readonly stallMs?: number
}

/** Into a new file, durable when this returns. What is not exactly what was promised is an error; the caller removes the file then. */
export async function download({ url, size_bytes, sha256 }: Wanted, file: string, options: DownloadOptions): Promise<void> {
  const { signal, progress, stallMs = STALL_MS } = options
  const stalled = new AbortController()
  const handle = await full(createBundle(file))
  const timer = setTimeout(() => stalled.abort(new Error(`nothing came for ${stallMs} ms`)), stallMs)
  try {
    const response = await ask(url, AbortSignal.any([signal, stalled.signal]))
    const hash = createHash('sha256')
    let size = 0
    await reading(url, async () => {
      for await (const chunk of chunksOf(response)) {
        timer.refresh()
        size += chunk.length
        if (size > size_bytes)
          throw new ApiError('INVALID_FORMAT', 'The bundle is larger than the index says', `${size_bytes} bytes`)
        hash.update(chunk)
        await writeAll(handle, chunk)
        progress(size / size_bytes)
      }
    })
    if (size < size_bytes) throw unreachable(url, `it ended after ${size} of ${size_bytes} bytes`)
    if (hash.digest('hex') !== sha256)
      throw new ApiError('INVALID_FORMAT', 'The bundle is not the one that the index names: its SHA-256 is another', 'sha256')
    await full(handle.sync())
  } finally {
    clearTimeout(timer)
    await handle.close()
  }
}

/** The types of browsers do not know that the body can be iterated. */
function chunksOf({ body }: Response): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  return (body as unknown as AsyncIterable<Uint8Array> | null) ?? []
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length; ) done += (await full(handle.write(bytes, done, bytes.length - done))).bytesWritten
}

async function ask(url: string, signal: AbortSignal): Promise<Response> {
  return reading(url, async () => {
    let at = url
    for (let hop = 0; hop <= MAX_REDIRECTIONS; hop++) {
      const response = await fetch(at, { signal, redirect: 'manual', headers: { accept: '*/*' } })
      if (response.ok) return response
      await response.body?.cancel()
      if (!REDIRECTIONS.includes(response.status)) throw new Error(`status ${response.status}`)
      at = nextAddress(at, response.headers.get('location') ?? '')
    }
    throw new Error(`it redirects more than ${MAX_REDIRECTIONS} times`)
  })
}

/** What holds for the address that somebody has set holds for each that it leads to. */
function nextAddress(from: string, location: string): string {
  const next = httpUrl(location, from)
  if (next === null) throw new Error('it redirects to what is no address of an HTTP or HTTPS server, or one with a password')
  if (from.startsWith('https:') && !next.startsWith('https:')) throw new Error('it redirects from HTTPS to HTTP')
  return next
}

async function reading<T>(url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ApiError) throw error
    // What `fetch` throws says nothing; its cause does.
    const { cause } = error as { cause?: unknown }
    throw unreachable(url, errorText(cause ?? error))
  }
}

function unreachable(url: string, why: string): ApiError {
  return new ApiError('SERVICE_UNAVAILABLE', `The server of the updates did not deliver: ${why}`, url)
}
