/** What a recording's file is worth once nobody writes to it any more. */
import { open } from 'node:fs/promises'
import { readMp4 } from './mp4.ts'

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
  const summary = await readMp4(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
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

async function sizeOf(path: string): Promise<number> {
  const file = await open(path, 'r').catch(() => null)
  if (!file) return 0
  try {
    return (await file.stat()).size
  } finally {
    await file.close()
  }
}
