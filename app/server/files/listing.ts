/** A page of a folder's contents, with the totals of all that matched. */
import { lookup } from 'mrmime'
import { devicePath } from './paths.ts'
import type { Tree } from './tree.ts'
import { type Entry, walk } from './walk.ts'

/** Entries looked at for one listing. */
export const MAX_ENTRIES = 100_000

/** Years of four digits. */
const FIRST = Date.parse('0000-01-01T00:00:00.000Z')
const LAST = Date.parse('9999-12-31T23:59:59.999Z')

export interface ListQuery {
  readonly recursive: boolean
  /** An extension, with or without its dot, in any case: only files that have it. */
  readonly filter?: string
  readonly limit: number
  readonly offset: number
  /** False for device paths that the caller shall not know of. */
  readonly sees: (path: string) => boolean
  readonly signal?: AbortSignal
}

export interface FileEntry {
  /** Relative to the folder that was asked for. */
  readonly name: string
  readonly type: 'file' | 'directory'
  readonly size?: number
  readonly modified: string
  readonly mime_type?: string
  readonly path: string
}

export interface Listing {
  readonly path: string
  readonly files: FileEntry[]
  readonly total_size: number
  readonly file_count: number
  readonly directory_count: number
  readonly total: number
  /** There are more than `MAX_ENTRIES`: the totals are of those that were looked at. */
  readonly truncated: boolean
}

export function mimeType(name: string): string {
  // The one container of ours that the table does not know.
  if (/\.avi$/i.test(name)) return 'video/x-msvideo'
  return lookup(name) ?? 'application/octet-stream'
}

export function listFolder(tree: Tree, folder: readonly string[], query: ListQuery): Promise<Listing> {
  const { recursive, limit, offset, sees, signal } = query
  const wanted = extensionTest(query.filter)
  return tree.inFolder(folder, async (handle, real) => {
    const page: Entry[] = []
    const sums = { total_size: 0, file_count: 0, directory_count: 0 }
    let [seen, total] = [0, 0]
    const options = { recursive, skip: (name: string) => !wanted(name), ...(signal ? { signal } : {}) }
    let truncated = false
    for await (const entry of walk(handle, real, options)) {
      if (seen === MAX_ENTRIES) {
        truncated = true
        break
      }
      seen++
      const directory = entry.stats.isDirectory()
      if (directory ? query.filter !== undefined : !sees(devicePath(entry.parts))) continue
      if (directory) sums.directory_count++
      else {
        sums.file_count++
        sums.total_size += entry.stats.size
      }
      if (total >= offset && page.length < limit) page.push(entry)
      total++
    }
    return { path: devicePath(real), files: page.map((entry) => entryOf(entry, real.length)), ...sums, total, truncated }
  })
}

function entryOf({ parts, stats }: Entry, depth: number): FileEntry {
  const common = { name: parts.slice(depth).join('/'), path: devicePath(parts), modified: dateText(stats.mtimeMs) }
  if (stats.isDirectory()) return { ...common, type: 'directory' }
  return { ...common, type: 'file', size: stats.size, mime_type: mimeType(parts.at(-1) ?? '') }
}

/** File systems know times that no date-time can say. */
function dateText(epochMs: number): string {
  return new Date(Math.min(Math.max(epochMs, FIRST), LAST)).toISOString()
}

function extensionTest(filter: string | undefined): (name: string) => boolean {
  if (filter === undefined) return () => true
  const ending = `.${filter.replace(/^\./, '').toLowerCase()}`
  return (name) => name.toLowerCase().endsWith(ending)
}
