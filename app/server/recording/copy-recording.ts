/** One recording onto one place: all its parts, and never onto another recording's file. */
import { stat, statfs } from 'node:fs/promises'
import { posix } from 'node:path'
import type { DeviceStorage } from '../files/index.ts'
import { copyFileChecked, hashFile, type Pace } from './copy.ts'
import { containedFolder } from './places.ts'
import type { RecordingPart, RecordingRow } from './row.ts'

/** A target is left with this much. */
const TARGET_RESERVE = 16 * 1024 * 1024

/**
 * Resolves with where the copies lie below `folder` (a device path); `hashed` is told of checksums that were not known. Rejects with ENOSPC
 * when it does not fit, with `OriginalDamaged`, `CopyDamaged`, or whatever the file systems say.
 */
export async function copyRecording(
  storage: DeviceStorage,
  folder: string,
  row: RecordingRow,
  pace: Pace,
  hashed: (path: string, sha256: string) => void,
): Promise<RecordingPart[]> {
  const root = storage.hostPath(storage.volumeOf(folder))
  await containedFolder(root, storage.hostPath(folder))
  const { bavail, bsize } = await statfs(root)
  if (bavail * bsize < row.size + TARGET_RESERVE) {
    throw Object.assign(new Error(`the medium is full: ${bavail * bsize} bytes free`), { code: 'ENOSPC' })
  }
  const copies: RecordingPart[] = []
  for (const part of row.parts) {
    const wanted = posix.join(folder, relativeName(part.path))
    const path = (await isTaken(storage.hostPath(wanted), part, pace)) ? beside(wanted, row.id) : wanted
    const { sha256, size } = await copyFileChecked(storage.hostPath(part.path), storage.hostPath(path), pace, part.sha256)
    if (part.sha256 === null) hashed(part.path, sha256)
    copies.push({ filename: posix.basename(path), path, duration: part.duration, size, sha256 })
  }
  return copies
}

/** Another recording's file of that name is left alone. */
async function isTaken(host: string, { size, sha256 }: RecordingPart, pace: Pace): Promise<boolean> {
  const there = await stat(host).catch(() => null)
  if (there === null) return false
  return there.size !== size || (sha256 !== null && (await hashFile(host, pace)).sha256 !== sha256)
}

function beside(path: string, id: number): string {
  return posix.join(posix.dirname(path), `${id}_${posix.basename(path)}`)
}

/** `yyyy/mm/dd/name` of a file in the day folders, else its name. */
export function relativeName(path: string): string {
  return /\/(\d{4}\/\d{2}\/\d{2}\/[^/]+)$/.exec(path)?.[1] ?? posix.basename(path)
}
