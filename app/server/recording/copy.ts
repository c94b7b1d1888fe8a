/** Reading whole recordings in the background: hashing and copying with bounded memory, at a pace that leaves the disk to the recorder. */
import { createHash } from 'node:crypto'
import { mkdir, open, rename, rm, stat, utimes } from 'node:fs/promises'
import { dirname, join, parse } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const CHUNK_BYTES = 256 * 1024
/** Debt of time that is paid at once; shorter waits only cost. */
const SHORTEST_WAIT_MS = 20

export interface Pace {
  readonly signal: AbortSignal
  /** Bytes per second at this moment. */
  readonly rate: () => number
  readonly onBytes?: (bytes: number) => void
}

/** SHA-256 in hex, and how many bytes went into it. */
export async function hashFile(path: string, pace: Pace): Promise<{ sha256: string; size: number }> {
  const hash = createHash('sha256')
  let size = 0
  await readPaced(path, pace, async (chunk) => {
    hash.update(chunk)
    size += chunk.length
  })
  return { sha256: hash.digest('hex'), size }
}

/** What arrived is not what was read: the medium, or the way to it, is bad. */
export class CopyDamaged extends Error {}

/** What was read is not what was recorded. */
export class OriginalDamaged extends Error {}

/**
 * Copies to a temporary name, makes it durable, reads it back, and only then gives it its name, with the time of the original. Replaces
 * what has that name. Rejects, and leaves nothing behind, when what was read back differs, or what was read differs from `expected`.
 */
export async function copyFileChecked(
  source: string,
  target: string,
  pace: Pace,
  expected: string | null = null,
): Promise<{ sha256: string; size: number }> {
  const folder = dirname(target)
  await mkdir(folder, { recursive: true, mode: 0o750 })
  const scratch = join(folder, `.${parse(target).base}.partial`)
  await rm(scratch, { force: true })
  try {
    const written = await writeCopy(source, scratch, pace)
    if (expected !== null && written.sha256 !== expected) throw new OriginalDamaged('the original does not match its checksum')
    const back = await hashFile(scratch, pace)
    if (back.sha256 !== written.sha256) throw new CopyDamaged('what was read back is not what was written')
    const { atime, mtime } = await stat(source)
    await utimes(scratch, atime, mtime)
    await rename(scratch, target)
    await syncPath(folder)
    return written
  } catch (error) {
    await rm(scratch, { force: true })
    throw error
  }
}

async function writeCopy(source: string, scratch: string, pace: Pace): Promise<{ sha256: string; size: number }> {
  const hash = createHash('sha256')
  let size = 0
  const file = await open(scratch, 'wx', 0o640)
  try {
    await readPaced(source, pace, async (chunk) => {
      hash.update(chunk)
      for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at, chunk.length - at)).bytesWritten
      size += chunk.length
    })
    await file.sync()
  } finally {
    await file.close()
  }
  return { sha256: hash.digest('hex'), size }
}

async function readPaced(path: string, pace: Pace, take: (chunk: Buffer) => Promise<void>): Promise<void> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  const file = await open(path, 'r')
  try {
    let due = performance.now()
    for (;;) {
      pace.signal.throwIfAborted()
      const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES)
      if (bytesRead === 0) return
      await take(chunk.subarray(0, bytesRead))
      pace.onBytes?.(bytesRead)
      due = Math.max(due, performance.now() - 1000) + (bytesRead / pace.rate()) * 1000
      const wait = due - performance.now()
      if (wait > SHORTEST_WAIT_MS) await delay(wait, undefined, { signal: pace.signal })
    }
  } finally {
    await file.close()
  }
}

async function syncPath(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** While something is recorded, background work takes little of the disk. */
export function backgroundRate(recording: () => boolean): () => number {
  return () => (recording() ? 8 * 1024 * 1024 : 64 * 1024 * 1024)
}
