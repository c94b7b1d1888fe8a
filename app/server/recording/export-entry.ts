/**
 * A finished export gets its entry and its name. The entry says who may see the file, so there is never a file without one: the entry comes
 * first, and what a crash leaves in between, an entry without its file, goes at the next start.
 */
import { linkSync, rmSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import { ApiError, Conflict } from '../errors.ts'
import { type DeviceStorage, freeName } from '../files/index.ts'
import { ensureFolder, syncFolder } from '../platform/index.ts'
import type { Store, Table } from '../store/index.ts'
import type { Catalogue } from './catalogue.ts'
import type { NewRow, RecordingRow } from './row.ts'

export const EXPORT_FOLDER = '/media/data/exports'
/** The entry whose file is about to get its name. */
const NOTE = 'export_entry'

export interface Cut {
  /** Milliseconds of the recording's own time: up to where was asked for. */
  readonly endMs: number
  /** From the key frame on. */
  readonly durationMs: number
  readonly size: number
  readonly createdBy: string | null
}

type CutEntry = Omit<NewRow, 'filename' | 'path' | 'parts' | 'state' | 'tag_markers'> & { readonly media_type: 'backup' }

/** What the catalogue says of a cut. Pure. */
export function entryOf(row: RecordingRow, { endMs, durationMs, size, createdBy }: Cut): CutEntry {
  const end = Math.min(endMs, row.duration)
  // A timelapse plays faster than it was recorded.
  const pace = row.media_type === 'video' ? 1 : (row.timestamp_end - row.timestamp_start) / Math.max(1, row.duration)
  const at = (position: number) => row.timestamp_start + Math.round(position * pace)
  return {
    media_type: 'backup',
    encoding: 'mp4',
    video_codec: row.video_codec,
    audio_codec: row.audio_codec === 'pcm' ? 'aac' : row.audio_codec,
    timestamp_start: at(Math.max(0, end - durationMs)),
    timestamp_end: at(end),
    duration: durationMs,
    size,
    resolution: row.resolution,
    fps: row.fps,
    camera: row.camera,
    time_synced: row.time_synced,
    boot_id: row.boot_id,
    trigger: 'manual',
    created_by: createdBy,
  }
}

export class ExportEntries {
  private readonly notes: Table<string, number>

  constructor(
    private readonly store: Store,
    private readonly catalogue: Catalogue,
    private readonly storage: DeviceStorage,
  ) {
    this.notes = store.table('meta')
  }

  /** Ends what a crash has cut off. */
  recover(): void {
    const id = this.notes.get(NOTE)
    if (id === undefined || !this.storage.isPresent(EXPORT_FOLDER)) return
    const row = this.catalogue.get(id)
    const file = row && statSync(this.storage.hostPath(row.path), { throwIfNoEntry: false })
    this.end(id, file?.size === row?.size)
  }

  /** The folder, made where it is missing. */
  folder(): string {
    const folder = this.storage.hostPath(EXPORT_FOLDER)
    try {
      ensureFolder(folder)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EEXIST' || code === 'ENOTDIR') throw new Conflict('A file is in the way of this folder', EXPORT_FOLDER)
      throw error
    }
    return folder
  }

  /** Nothing in here waits: whoever asks finds neither entry nor file, or both. */
  place(temporary: string, stem: string, entry: CutEntry): RecordingRow {
    const folder = this.folder()
    const taken = new Set<string>()
    for (;;) {
      const filename = freeName(folder, `${stem}.mp4`, taken)
      const path = posix.join(EXPORT_FOLDER, filename)
      taken.add(join(folder, filename))
      // Of a file that has gone without its entry.
      if (this.catalogue.byPath(path)) continue
      const row = this.enter({ ...entry, filename, path })
      if (!this.name(temporary, join(folder, filename), row)) continue
      syncFolder(folder)
      this.end(row.id, true)
      rmSync(temporary, { force: true })
      return row
    }
  }

  private enter(entry: CutEntry & Pick<NewRow, 'filename' | 'path'>): RecordingRow {
    return this.store.transaction(() => {
      const row = this.catalogue.addMedia(entry)
      this.notes.put(NOTE, row.id)
      return row
    })
  }

  /** False: somebody took the name in this moment. */
  private name(temporary: string, path: string, { id }: RecordingRow): boolean {
    try {
      linkSync(temporary, path)
      return true
    } catch (error) {
      this.end(id, false)
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EEXIST') return false
      if (code === 'EXDEV') throw new Conflict('That folder lies on another disk', EXPORT_FOLDER)
      if (code === 'ENOSPC' || code === 'EDQUOT') throw new ApiError('INSUFFICIENT_STORAGE', 'The storage is full')
      throw error
    }
  }

  private end(id: number, placed: boolean): void {
    this.store.urgent(() => {
      if (!placed) this.catalogue.remove(id)
      this.notes.remove(NOTE)
    })
  }
}
