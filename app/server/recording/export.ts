/** Cuts a time range out of a recording into one MP4 below /media/data/exports, with an entry of its own; the helper does the work. */
import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { currentActor } from '../actor.ts'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { ApiError, errorText } from '../errors.ts'
import { type DeviceStorage, type Files, UPLOAD_FOLDER } from '../files/index.ts'
import type { JobContext } from '../jobs/index.ts'
import type { Logger } from '../log.ts'
import { HELPER_ERROR, HelperError, type MediaSupervisor, type Notifications } from '../media/index.ts'
import { ensureFolder } from '../platform/index.ts'
import type { Store } from '../store/index.ts'
import type { Catalogue } from './catalogue.ts'
import { ExportEntries, entryOf } from './export-entry.ts'
import type { RecordingRow } from './row.ts'

/** The index goes in front by copying the file once. */
const COPIES = 2
const MARGIN_BYTES = 64 * 1024 * 1024

export interface ExportRange {
  /** Milliseconds of the recording's own time. */
  readonly startMs: number
  readonly endMs: number
}

export interface Exported {
  readonly recording_id: number
  readonly filename: string
  /** Device path. */
  readonly path: string
  readonly duration_ms: number
  readonly size: number
}

export interface CutPart {
  readonly path: string
  readonly start_ms: number
  readonly end_ms: number
}

/** The pieces of a recording's files that the range covers; paths are device paths. Pure. */
export function cutParts(row: Pick<RecordingRow, 'parts'>, { startMs, endMs }: ExportRange): CutPart[] {
  let begin = 0
  return row.parts.flatMap(({ path, duration }) => {
    const start_ms = Math.max(0, startMs - begin)
    const end_ms = Math.min(duration, endMs - begin)
    begin += duration
    return start_ms < end_ms ? [{ path, start_ms, end_ms }] : []
  })
}

export class Exports implements Component {
  private nextId = 1
  private entries: ExportEntries | undefined

  constructor(
    private readonly media: MediaSupervisor,
    private readonly store: Store,
    private readonly catalogue: Catalogue,
    private readonly storage: DeviceStorage,
    private readonly files: Pick<Files, 'inTurn'>,
    private readonly bus: Bus,
    private readonly log: Logger,
  ) {}

  /** Unfinished files go with the unfinished uploads. */
  start(): void {
    this.entries = new ExportEntries(this.store, this.catalogue, this.storage)
    try {
      this.entries.recover()
    } catch (error) {
      this.log.error({ error: errorText(error) }, 'an unfinished export cannot be removed')
    }
  }

  stop(): void {}

  /** Throws what cannot be done; `stem` is the new file's name without its extension. */
  check(row: RecordingRow, range: ExportRange): CutPart[] {
    if (row.video_codec === 'mjpeg') throw new ApiError('INVALID_FORMAT', 'Motion JPEG cannot be put into an MP4 file')
    const parts = cutParts(row, range)
    if (parts.length === 0) throw new ApiError('INVALID_REQUEST', 'The recording has nothing in that range', 'body.start_ms')
    const share = parts.reduce((sum, { start_ms, end_ms }) => sum + end_ms - start_ms, 0) / Math.max(1, row.duration)
    const needed = Math.round(row.size * Math.min(1, share) * COPIES) + MARGIN_BYTES
    const available = this.storage.space()?.available ?? 0
    if (available < needed) throw new ApiError('INSUFFICIENT_STORAGE', `${needed} bytes are needed, ${available} are free`)
    return parts
  }

  async run(row: RecordingRow, range: ExportRange, stem: string, context: JobContext): Promise<Exported> {
    const parts = this.check(row, range).map((part) => ({ ...part, path: this.storage.hostPath(part.path) }))
    const createdBy = currentActor()?.username ?? null
    const id = this.nextId++
    // What is in the way is told before the work.
    this.required().folder()
    const temporary = this.temporary()
    const onProgress = (event: Notifications['media.progress']) => {
      if (event.id === id) context.progress(event.fraction)
    }
    const onAbort = () => {
      this.media
        .call('media.cancel', { id })
        .catch((error) => this.log.info({ id, error: errorText(error) }, 'nothing to cancel'))
    }
    this.media.on('media.progress', onProgress)
    context.signal.addEventListener('abort', onAbort, { once: true })
    try {
      context.signal.throwIfAborted()
      const done = await this.media.call('media.export', { id, parts, path: temporary })
      const made = { endMs: range.endMs, durationMs: done.duration_ms, size: done.size_bytes, createdBy }
      const entered = await this.files.inTurn(async () => {
        context.signal.throwIfAborted()
        // As it is now: the clock may have been corrected meanwhile.
        return this.required().place(temporary, stem, entryOf(this.catalogue.get(row.id) ?? row, made))
      })
      this.tell(entered, row)
      const { filename, path, duration, size } = entered
      return { recording_id: entered.id, filename, path, duration_ms: duration, size }
    } catch (error) {
      // A helper that died could not clean up behind itself.
      await rm(temporary, { force: true })
      await rm(`${temporary}.part`, { force: true })
      context.signal.throwIfAborted()
      throw exportError(error)
    } finally {
      context.signal.removeEventListener('abort', onAbort)
      this.media.off('media.progress', onProgress)
    }
  }

  private required(): ExportEntries {
    if (!this.entries) throw new Error('exports have not been started')
    return this.entries
  }

  /** Where no request can see it, on the same file system. */
  private temporary(): string {
    const folder = join(this.storage.hostRoot, UPLOAD_FOLDER)
    ensureFolder(folder, 0o700)
    return join(folder, `${randomUUID()}.mp4`)
  }

  private tell(entered: RecordingRow, { id: source }: RecordingRow): void {
    const { id, camera, filename, path, size } = entered
    this.bus.publish('recording', 'exported', { id, camera, filename, path, size, source })
    this.bus.emit('recording-finished', entered)
  }
}

function exportError(error: unknown): unknown {
  if (!(error instanceof HelperError)) return error
  if (error.code === HELPER_ERROR.unsupported) return new ApiError('INVALID_FORMAT', error.message)
  if (error.code === HELPER_ERROR.busy) return new ApiError('SERVICE_UNAVAILABLE', 'Too many exports are running')
  if (error.data.errno === 'ENOSPC') return new ApiError('INSUFFICIENT_STORAGE', 'The storage is full')
  return error
}
