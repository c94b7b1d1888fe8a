/** File names from clients and from the clock. */
import { existsSync } from 'node:fs'
import { join, parse } from 'node:path'

/** Leaves room for a suffix and an extension within the file system's 255 bytes. */
const MAX_STEM_BYTES = 200

/**
 * A safe name (no folder, no leading dot, only letters, digits, `.`, `_`, `-`) made of what a client sent, without its extension;
 * null when nothing usable is left.
 */
export function sanitiseStem(name: string): string | null {
  const base = name.replace(/\.[A-Za-z0-9]{1,5}$/, '')
  const clean = base
    .normalize('NFKC')
    .replace(/[^\p{L}\p{N}._-]+/gu, '_')
    .replace(/\.{2,}/g, '_')
    .replace(/^[._-]+/, '')
    .replace(/[._-]+$/, '')
  let short = clean
  while (Buffer.byteLength(short) > MAX_STEM_BYTES) short = [...short].slice(0, -1).join('')
  return short === '' ? null : short
}

/** `yyyyMMdd_HHmmss` in local time. */
export function timeStem(date: Date): string {
  const two = (n: number) => String(n).padStart(2, '0')
  const day = `${date.getFullYear()}${two(date.getMonth() + 1)}${two(date.getDate())}`
  return `${day}_${two(date.getHours())}${two(date.getMinutes())}${two(date.getSeconds())}`
}

/** The year/month/day folder of a date, local time. */
export function dayFolder(date: Date): string {
  const two = (n: number) => String(n).padStart(2, '0')
  return join(String(date.getFullYear()), two(date.getMonth() + 1), two(date.getDate()))
}

/** `name`, or `name_1`, `name_2` …: the first that is neither in `folder` nor claimed (paths about to be made). */
export function freeName(folder: string, name: string, claimed: ReadonlySet<string> = new Set()): string {
  const { name: stem, ext } = parse(name)
  const taken = (candidate: string) => claimed.has(join(folder, candidate)) || existsSync(join(folder, candidate))
  let candidate = name
  for (let n = 1; taken(candidate); n++) candidate = `${stem}_${n}${ext}`
  return candidate
}
