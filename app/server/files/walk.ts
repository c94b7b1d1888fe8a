/** What lies in a folder and below, in an order that stays: each folder sorted by name, its contents right behind it. */
import { type Dir, lstatSync, opendirSync, type Stats } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { canBeNamed, isReserved, MAX_DEPTH } from './paths.ts'
import { at, type Folder, isAbsent, peek } from './tree.ts'

/** So many entries are looked at before everything else has its turn: well under a millisecond. */
const BATCH = 64
/** The same for names alone. */
const NAMES = 512
/** Sorted in one go, which takes a few milliseconds. */
const RUN = 8192

export interface Entry {
  /** Components below the storage. */
  readonly parts: readonly string[]
  readonly stats: Stats
}

export interface WalkOptions {
  readonly recursive: boolean
  /** Names of files that are not looked at. */
  readonly skip?: (name: string) => boolean
  readonly signal?: AbortSignal
}

/**
 * Folders and regular files only; names that no request could say are left out with all below them. Neither the number of entries nor their
 * depth holds up the event loop, but memory is taken for the names of one folder a level.
 */
export async function* walk(folder: Folder, parts: readonly string[], options: WalkOptions): AsyncGenerator<Entry, void, void> {
  const names = await sorted(await namesIn(folder, parts, options))
  for (const [index, name] of names.entries()) {
    if (index % BATCH === BATCH - 1) await turn()
    if (options.signal?.aborted) return
    const stats = statsOf(folder, name)
    if (stats === null) continue
    const own = [...parts, name]
    yield { parts: own, stats }
    if (options.recursive && stats.isDirectory() && own.length < MAX_DEPTH) yield* walkBelow(folder, own, options)
  }
}

async function* walkBelow(folder: Folder, parts: readonly string[], options: WalkOptions): AsyncGenerator<Entry, void, void> {
  const found = peek(folder, parts.at(-1) ?? '')
  if (found === null) return
  try {
    if (found.stats.isDirectory()) yield* walk(found.handle, parts, options)
  } finally {
    found.handle.close()
  }
}

async function namesIn(folder: Folder, parts: readonly string[], { skip, signal }: WalkOptions): Promise<string[]> {
  const names: string[] = []
  const directory = openToRead(folder)
  if (directory === null) return names
  try {
    let read = 0
    for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
      if (++read % NAMES === 0) await turn()
      if (signal?.aborted) break
      if (entry.isSymbolicLink() || entry.isFIFO() || entry.isSocket() || entry.isBlockDevice() || entry.isCharacterDevice())
        continue
      if (!canBeNamed(entry.name) || (parts.length === 0 && isReserved(entry.name))) continue
      if (entry.isFile() && skip?.(entry.name)) continue
      names.push(entry.name)
    }
    return names
  } finally {
    directory.closeSync()
  }
}

/** Null for a folder that may not be read, or has gone. */
function openToRead(folder: Folder): Dir | null {
  try {
    return opendirSync(at(folder), { bufferSize: 512 })
  } catch (error) {
    if (isAbsent(error)) return null
    throw error
  }
}

/** Null for what is gone again, or is neither folder nor file after all. */
function statsOf(folder: Folder, name: string): Stats | null {
  try {
    const stats = lstatSync(at(folder, name))
    return stats.isFile() || stats.isDirectory() ? stats : null
  } catch (error) {
    if (isAbsent(error)) return null
    throw error
  }
}

/** By code units. A large folder is sorted in runs that are merged, with turns of the event loop between. */
export async function sorted(names: string[]): Promise<string[]> {
  let runs: string[][] = []
  for (let begin = 0; begin < names.length; begin += RUN) {
    runs.push(names.slice(begin, begin + RUN).sort())
    if (names.length > RUN) await turn()
  }
  while (runs.length > 1) {
    const merged: string[][] = []
    for (let i = 0; i < runs.length; i += 2) merged.push(await merge(runs[i] ?? [], runs[i + 1] ?? []))
    runs = merged
  }
  return runs[0] ?? []
}

async function merge(left: readonly string[], right: readonly string[]): Promise<string[]> {
  const merged: string[] = []
  for (let l = 0, r = 0; l < left.length || r < right.length; ) {
    const [a, b] = [left[l], right[r]]
    if (b === undefined || (a !== undefined && a <= b)) {
      merged.push(a ?? '')
      l++
    } else {
      merged.push(b)
      r++
    }
    if (merged.length % RUN === 0) await turn()
  }
  return merged
}
