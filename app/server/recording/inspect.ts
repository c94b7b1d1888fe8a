/** Whether a file is what the catalogue says. */
import { stat } from 'node:fs/promises'
import type { DeviceStorage } from '../files/index.ts'
import { hashFile, type Pace } from './copy.ts'
import type { RecordingPart } from './row.ts'

export const PROBLEMS = ['missing', 'size_mismatch', 'hash_mismatch', 'unreadable'] as const
export type Problem = (typeof PROBLEMS)[number]

export interface Inspection {
  readonly problem: Problem | null
  /** Computed where it was asked for and the file is there. */
  readonly sha256: string | null
}

/** With `pace`, the checksum is computed as well, and compared where one is known. */
export async function inspect(part: RecordingPart, storage: DeviceStorage, pace: Pace | null): Promise<Inspection> {
  const path = storage.hostPath(part.path)
  try {
    const { size } = await stat(path)
    if (size !== part.size) return { problem: 'size_mismatch', sha256: null }
    if (pace === null) return { problem: null, sha256: null }
    const { sha256 } = await hashFile(path, pace)
    return { problem: part.sha256 !== null && part.sha256 !== sha256 ? 'hash_mismatch' : null, sha256 }
  } catch (error) {
    pace?.signal.throwIfAborted()
    return { problem: (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'missing' : 'unreadable', sha256: null }
  }
}
