/** `storage/verify`: the catalogue against the files, and the files against the catalogue. */
import { setImmediate as breathe } from 'node:timers/promises'
import type { DeviceStorage } from '../files/index.ts'
import { adopt, type Dating, groupParts } from './adopt.ts'
import type { Catalogue } from './catalogue.ts'
import type { Pace } from './copy.ts'
import { inspect, type Problem } from './inspect.ts'
import { mediaFiles } from './media-files.ts'
import { COPY_PLACES, type CopyPlace } from './places.ts'
import { enterHash, rejudge } from './rejudge.ts'
import type { RecordingRow } from './row.ts'

const BATCH = 200
/** Findings of each kind that are listed; all are counted. */
const LISTED = 100

export interface Findings<T> {
  count: number
  readonly items: T[]
}

export interface VerifyResult {
  checked: number
  sound: number
  /** Their medium is not there: nothing can be said. */
  unreachable: number
  /** Checksums that were computed for the first time. */
  hashed: number
  readonly problems: Findings<{ recording_id: number; path: string; problem: Problem; copies: CopyPlace[] }>
  readonly orphans: Findings<{ path: string }>
  readonly adopted: Findings<{ recording_id: number; path: string }>
  readonly rejudged: Findings<{ recording_id: number; before: string; after: string }>
}

export interface VerifyWork {
  readonly signal: AbortSignal
  readonly rate: () => number
  readonly checkIntegrity: boolean
  readonly repair: boolean
  readonly progress: (fraction: number, message: string) => void
}

export interface VerifyParts {
  readonly catalogue: Catalogue
  readonly storage: DeviceStorage
  readonly clock: Dating
  readonly hasCopy: (place: CopyPlace, id: number) => boolean
}

function note<T>(findings: Findings<T>, item: T): void {
  findings.count++
  if (findings.items.length < LISTED) findings.items.push(item)
}

export async function verifyStorage(parts: VerifyParts, work: VerifyWork): Promise<VerifyResult> {
  const none = <T>(): Findings<T> => ({ count: 0, items: [] })
  const result: VerifyResult = {
    checked: 0,
    sound: 0,
    unreachable: 0,
    hashed: 0,
    problems: none(),
    orphans: none(),
    adopted: none(),
    rejudged: none(),
  }
  await checkRows(parts, work, result)
  await checkFiles(parts, work, result)
  return result
}

async function checkRows(parts: VerifyParts, work: VerifyWork, result: VerifyResult): Promise<void> {
  const { catalogue, storage } = parts
  const newest = catalogue.newestId()
  for (let after = 0; ; ) {
    const rows = catalogue.upFrom(after, BATCH)
    for (const { id } of rows) {
      work.signal.throwIfAborted()
      after = id
      // As it is now: the batch may be old.
      const row = catalogue.get(id)
      if (!row || row.state === 'recording') continue
      result.checked++
      if (await storage.reachable(row.path)) await checkRow(parts, work, result, row)
      else result.unreachable++
      work.progress((id / Math.max(1, newest)) * 0.9, `recording ${id} of ${newest}`)
    }
    if (rows.length < BATCH) return
    await breathe()
  }
}

async function checkRow(parts: VerifyParts, work: VerifyWork, result: VerifyResult, row: RecordingRow): Promise<void> {
  const { catalogue, storage, hasCopy } = parts
  const pace: Pace | null = work.checkIntegrity ? work : null
  let sound = true
  for (const part of row.parts) {
    const { problem, sha256 } = await inspect(part, storage, pace)
    // A defect one was torn; that its file is short or empty is no news.
    if (problem !== null && row.state === 'ready') {
      sound = false
      const copies = COPY_PLACES.filter((place) => hasCopy(place, row.id))
      note(result.problems, { recording_id: row.id, path: part.path, problem, copies })
    } else if (sha256 !== null && part.sha256 === null) {
      enterHash(catalogue, row.id, part.path, sha256)
      result.hashed++
    }
  }
  if (sound) result.sound++
  if (!work.repair || (sound && row.state === 'ready') || !isVideo(row)) return
  const { state } = await rejudge(row, catalogue, storage)
  if (state !== row.state) note(result.rejudged, { recording_id: row.id, before: row.state, after: state })
}

function isVideo({ encoding }: RecordingRow): boolean {
  return encoding === 'mp4' || encoding === 'avi'
}

async function checkFiles({ catalogue, storage, clock }: VerifyParts, work: VerifyWork, result: VerifyResult): Promise<void> {
  const folders = new Set([storage.recordings, storage.devicePath('recordings')])
  const orphans: string[] = []
  for (const folder of folders) {
    if (!(await storage.reachable(folder))) continue
    work.progress(0.9, `files in ${folder}`)
    for await (const path of mediaFiles(storage, folder)) {
      work.signal.throwIfAborted()
      if (belongs(catalogue, path)) continue
      note(result.orphans, { path })
      if (work.repair) orphans.push(path)
    }
  }
  for (const [n, group] of groupParts(orphans).entries()) {
    work.signal.throwIfAborted()
    work.progress(0.9 + (n / orphans.length) * 0.1, `adopting ${group.paths[0]}`)
    const row = await adopt(group, catalogue, storage, clock)
    if (row) note(result.adopted, { recording_id: row.id, path: row.path })
  }
}

/** A part that is being written is not in the catalogue yet, but its first one is. */
function belongs(catalogue: Catalogue, path: string): boolean {
  if (catalogue.byPath(path)) return true
  const first = path.replace(/\.part\d+(\.[^./]+)$/, '$1')
  return first !== path && catalogue.byPath(first)?.state === 'recording'
}
