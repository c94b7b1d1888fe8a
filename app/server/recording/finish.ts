/** What a recording's files are worth once nobody writes to them any more. */
import { open, rm, stat } from 'node:fs/promises'
import { extname } from 'node:path'
import { readFinishedAvi, repairAvi } from './avi.ts'
import { readFinalisedDuration, readMp4 } from './mp4.ts'
import { countParts, partName } from './parts.ts'
import type { RecordingPart, RecordingRow } from './row.ts'

export interface Verdict {
  readonly state: 'ready' | 'defect'
  readonly durationMs: number
  readonly sizeBytes: number
}

export interface RecordingVerdict extends Verdict {
  readonly parts: readonly RecordingPart[]
}

/** A further part that holds less than this and no picture was torn off before its first one: nothing is lost with it. */
const STUB_BYTES = 4 * 1024 * 1024

/**
 * Judges every part that the catalogue knows or that lies on the disk (a crash may have come between the two). It is `ready` when all of
 * them play.
 */
export async function judgeRecording(row: RecordingRow, hostFirst: string): Promise<RecordingVerdict> {
  const count = Math.max(row.parts.length, countParts(hostFirst))
  const verdicts: Verdict[] = []
  for (let index = 1; index <= count; index++) verdicts.push(await judgeFile(partName(hostFirst, index)))
  // The one that had just begun, and the one that was opened in advance.
  for (let last = verdicts.at(-1); verdicts.length > 1 && last && isStub(last); last = verdicts.at(-1)) {
    await rm(partName(hostFirst, verdicts.length), { force: true })
    verdicts.pop()
  }
  const parts = verdicts.map(({ durationMs, sizeBytes }, i) => ({
    filename: partName(row.filename, i + 1),
    path: partName(row.path, i + 1),
    duration: durationMs,
    size: sizeBytes,
    sha256: null,
  }))
  return {
    state: verdicts.every(({ state }) => state === 'ready') ? 'ready' : 'defect',
    durationMs: parts.reduce((sum, { duration }) => sum + duration, 0),
    sizeBytes: parts.reduce((sum, { size }) => sum + size, 0),
    parts,
  }
}

function isStub({ state, sizeBytes }: Verdict): boolean {
  return state === 'defect' && sizeBytes < STUB_BYTES
}

/**
 * Reads the file back. A torn tail (crash, full disk) is cut off behind the last whole picture, so that players need not guess.
 * A file that is missing or holds no playable picture is `defect`; it is left as it is for whoever wants to rescue it.
 */
export async function judgeFile(path: string): Promise<Verdict> {
  const size = await sizeOf(path)
  if (size === 0) return { state: 'defect', durationMs: 0, sizeBytes: 0 }
  const durationMs = extname(path) === '.avi' ? await playableAvi(path) : await playableMp4(path)
  return durationMs === null
    ? { state: 'defect', durationMs: 0, sizeBytes: size }
    : { state: 'ready', durationMs, sizeBytes: await sizeOf(path) }
}

async function playableAvi(path: string): Promise<number | null> {
  return (await readFinishedAvi(path))?.durationMs ?? (await repairAvi(path))?.durationMs ?? null
}

async function playableMp4(path: string): Promise<number | null> {
  const finalised = await readFinalisedDuration(path)
  if (finalised !== null) return finalised
  const summary = await readMp4(path)
  if (!summary || summary.durationMs <= 0) return null
  if (summary.wholeBytes < summary.fileBytes) await truncateTo(path, summary.wholeBytes)
  return summary.durationMs
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
