/** Names of a recording's parts: `name.mp4`, `name.part2.mp4`, `name.part3.mp4` … Known beforehand, so that a crash hides none. */
import { existsSync, readdirSync } from 'node:fs'
import { posix } from 'node:path'
import { freeName } from '../files/index.ts'

/** Path or name of part `index` (from 1) of the recording whose first part is `first`. */
export function partName(first: string, index: number): string {
  if (index === 1) return first
  const { dir, name, ext } = posix.parse(first)
  return posix.join(dir, `${name}.part${index}${ext}`)
}

/** Which part of `first` a path is; null: none. */
export function partIndex(first: string, path: string): number | null {
  if (path === first) return 1
  const { dir, name, ext } = posix.parse(first)
  const start = posix.join(dir, `${name}.part`)
  if (!path.startsWith(start) || !path.endsWith(ext)) return null
  const digits = path.slice(start.length, path.length - ext.length)
  return /^([2-9]|[1-9]\d+)$/.test(digits) ? Number(digits) : null
}

/** How many parts lie on the disk, the first one taken for granted. */
export function countParts(hostFirst: string): number {
  let count = 1
  while (existsSync(partName(hostFirst, count + 1))) count += 1
  return count
}

/** A name in `folder` that is free for the first part and for all that may follow. */
export function freeRecordingName(folder: string, stem: string, extension: string, claimed: ReadonlySet<string>): string {
  const names = readdirSync(folder)
  const taken = new Set(claimed)
  for (;;) {
    const candidate = freeName(folder, `${stem}.${extension}`, taken)
    if (!names.some((name) => (partIndex(candidate, name) ?? 1) > 1)) return candidate
    taken.add(posix.join(folder, candidate))
  }
}
