/** What a recording's file is worth once nobody writes to it any more. */
import { open, stat } from 'node:fs/promises'
import { readFinalisedDuration, readMp4 } from './mp4.ts'

export interface Verdict {
  readonly state: 'ready' | 'defect'
  readonly durationMs: number
  readonly sizeBytes: number
}

/**
 * Reads the file back. A torn tail (crash, full disk) is cut off behind the last whole fragment, so that players need not guess.
 * A file that is missing or holds no playable picture is `defect`; it is left as it is for whoever wants to rescue it.
 */
export async function judgeFile(path: string): Promise<Verdict> {
  if ((await sizeOf(path)) === 0) return { state: 'defect', durationMs: 0, sizeBytes: 0 }
  const durationMs = await readFinalisedDuration(path)
  if (durationMs !== null) return { state: 'ready', durationMs, sizeBytes: await sizeOf(path) }
  const summary = await readMp4(path)
  if (!summary || summary.durationMs <= 0) return { state: 'defect', durationMs: 0, sizeBytes: await sizeOf(path) }
  if (summary.wholeBytes < summary.fileBytes) await truncateTo(path, summary.wholeBytes)
  return { state: 'ready', durationMs: summary.durationMs, sizeBytes: summary.wholeBytes }
}

async function truncateTo(path: string, bytes: number): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await file.truncate(bytes)
    await file.datasync()
  } finally {
    await file.close()
  }
}

/** 0 where there is no file. */
async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0
    throw error
  }
}
