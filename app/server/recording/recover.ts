/** `storage/recover`: recordings whose file is gone or damaged come back from a copy, or from what lies on the recordings' own medium. */
import { mkdir, stat } from 'node:fs/promises'
import { posix } from 'node:path'
import { ApiError } from '../errors.ts'
import { type DeviceStorage, freeName } from '../files/index.ts'
import { adopt, type Dating, groupParts, restoredNow } from './adopt.ts'
import type { Catalogue } from './catalogue.ts'
import type { CopyRecord } from './copies.ts'
import { CopyDamaged, copyFileChecked, OriginalDamaged, type Pace } from './copy.ts'
import { relativeName } from './copy-recording.ts'
import { inspect } from './inspect.ts'
import { mediaFiles } from './media-files.ts'
import type { CopyPlace } from './places.ts'
import { rejudge } from './rejudge.ts'
import { type RecordingRow, VIDEO_TYPES } from './row.ts'
import type { Findings } from './verify.ts'

const LISTED = 100

export type RecoverSource = 'primary' | CopyPlace

export interface RecoverResult {
  /** Recordings of the time range that were looked at. */
  checked: number
  readonly recovered: Findings<{ recording_id: number; path: string }>
  readonly failed: Findings<{ recording_id: number | null; path: string; why: string }>
}

export interface RecoverWork {
  readonly signal: AbortSignal
  readonly rate: () => number
  readonly source: RecoverSource
  /** Epoch milliseconds; both included. */
  readonly from: number
  readonly to: number
  readonly progress: (fraction: number, message: string) => void
}

export interface RecoverParts {
  readonly catalogue: Catalogue
  readonly storage: DeviceStorage
  readonly clock: Dating
  readonly placePath: (place: CopyPlace) => string | undefined
  readonly copyOf: (place: CopyPlace, id: number) => CopyRecord | undefined
}

export async function recoverStorage(parts: RecoverParts, work: RecoverWork): Promise<RecoverResult> {
  const result: RecoverResult = { checked: 0, recovered: { count: 0, items: [] }, failed: { count: 0, items: [] } }
  const { source } = work
  const folder = source === 'primary' ? parts.storage.recordings : parts.placePath(source)
  if (folder === undefined || !(await parts.storage.reachable(folder)))
    throw new ApiError('SERVICE_UNAVAILABLE', `The ${source} storage is not there`, folder ?? source)
  await recoverRows(parts, work, result)
  await recoverFiles(parts, work, result, folder)
  return result
}

function recovered(result: RecoverResult, row: RecordingRow): void {
  result.recovered.count++
  if (result.recovered.items.length < LISTED) result.recovered.items.push({ recording_id: row.id, path: row.path })
}

function failed(result: RecoverResult, recording_id: number | null, path: string, why: string): void {
  result.failed.count++
  if (result.failed.items.length < LISTED) result.failed.items.push({ recording_id, path, why })
}

async function recoverRows(parts: RecoverParts, work: RecoverWork, result: RecoverResult): Promise<void> {
  const { catalogue, storage } = parts
  const { from, to, source } = work
  const total = catalogue.count({ types: VIDEO_TYPES, from, to: to + 1, limit: 0, offset: 0 })
  for (const listed of catalogue.walk({ types: VIDEO_TYPES, from, to: to + 1 }, true)) {
    work.signal.throwIfAborted()
    const row = catalogue.get(listed.id)
    if (!row || row.state === 'recording') continue
    result.checked++
    work.progress((result.checked / Math.max(1, total)) * 0.8, `recording ${row.id}`)
    if (!(await storage.reachable(row.path))) {
      failed(result, row.id, row.path, 'the medium of this recording is not there')
      continue
    }
    if (source === 'primary') {
      if (row.state !== 'defect' || (await rejudge(row, catalogue, storage)).state !== 'ready') continue
      catalogue.update(row.id, restoredNow(parts.clock))
      recovered(result, row)
      continue
    }
    const damaged = await damagedParts(row, storage, work)
    if (damaged.length > 0) {
      const why = await fetchBack(parts, work, row, source, damaged)
      if (why === null) recovered(result, row)
      else failed(result, row.id, row.path, why)
    }
  }
}

/** Indexes of the parts that are not what the copy was made of. */
async function damagedParts(row: RecordingRow, storage: DeviceStorage, pace: Pace): Promise<number[]> {
  const damaged: number[] = []
  for (const [n, part] of row.parts.entries()) {
    const { problem } = await inspect(part, storage, part.sha256 === null ? null : pace)
    if (problem !== null || row.state === 'defect') damaged.push(n)
  }
  return damaged
}

/** Null: it is whole again. */
async function fetchBack(
  { catalogue, storage, clock, copyOf }: RecoverParts,
  work: RecoverWork,
  row: RecordingRow,
  place: CopyPlace,
  damaged: readonly number[],
): Promise<string | null> {
  const copy = copyOf(place, row.id)
  if (!copy) return 'there is no copy'
  const restored = [...row.parts]
  for (const n of damaged) {
    const source = copy.parts[n]
    const target = restored[n]
    if (!source || !target) return 'the copy has fewer parts'
    try {
      const { sha256, size } = await copyFileChecked(
        storage.hostPath(source.path),
        storage.hostPath(target.path),
        work,
        source.sha256,
      )
      restored[n] = { ...target, duration: source.duration, size, sha256 }
    } catch (error) {
      work.signal.throwIfAborted()
      return explain(error)
    }
  }
  const size = restored.reduce((sum, part) => sum + part.size, 0)
  const duration = restored.reduce((sum, part) => sum + part.duration, 0)
  const updated = catalogue.update(row.id, { parts: restored, size, duration, ...restoredNow(clock) })
  if (!updated) return 'the recording was deleted meanwhile'
  const judged = await rejudge(updated, catalogue, storage)
  return judged.state === 'ready' ? null : 'the copy cannot be played either'
}

function explain(error: unknown): string {
  if (error instanceof OriginalDamaged) return 'the copy is damaged'
  if (error instanceof CopyDamaged) return 'what was written could not be read back'
  const code = (error as NodeJS.ErrnoException).code
  return code === 'ENOENT' ? 'the copy is missing' : `the copy cannot be read: ${code ?? 'failure'}`
}

/** Files that no entry knows of, such as after the loss of the database. */
async function recoverFiles(parts: RecoverParts, work: RecoverWork, result: RecoverResult, folder: string): Promise<void> {
  const { catalogue, storage, clock } = parts
  const unknown: string[] = []
  for await (const path of mediaFiles(storage, folder)) {
    work.signal.throwIfAborted()
    if (catalogue.byPath(path) || catalogue.byPath(path.replace(/\.part\d+(\.[^./]+)$/, '$1'))) continue
    const { mtimeMs } = await stat(storage.hostPath(path))
    if (mtimeMs >= work.from && mtimeMs <= work.to) unknown.push(path)
  }
  for (const [n, group] of groupParts(unknown).entries()) {
    work.signal.throwIfAborted()
    work.progress(0.8 + (n / unknown.length) * 0.2, `file ${group.paths[0]}`)
    try {
      const paths = work.source === 'primary' ? group.paths : await bringHome(group.paths, storage, work)
      const row = await adopt({ paths }, catalogue, storage, clock)
      if (row) recovered(result, row)
      else failed(result, null, group.paths[0] ?? '', 'it cannot be played')
    } catch (error) {
      work.signal.throwIfAborted()
      failed(result, null, group.paths[0] ?? '', explain(error))
    }
  }
}

/** Copies files to where recordings lie, under names that are free; returns their device paths. */
async function bringHome(paths: readonly string[], storage: DeviceStorage, pace: Pace): Promise<string[]> {
  const first = posix.join(storage.recordings, relativeName(paths[0] ?? ''))
  const folder = storage.hostPath(posix.dirname(first))
  await mkdir(folder, { recursive: true, mode: 0o750 })
  const name = freeName(folder, posix.basename(first))
  const { name: stem, ext } = posix.parse(name)
  const home: string[] = []
  for (const [n, path] of paths.entries()) {
    const target = posix.join(posix.dirname(first), n === 0 ? name : `${stem}.part${n + 1}${ext}`)
    await copyFileChecked(storage.hostPath(path), storage.hostPath(target), pace)
    home.push(target)
  }
  return home
}
