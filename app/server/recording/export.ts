/** Cuts a time range out of a recording into one MP4 below /media/data/exports; the helper does the work. */
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { currentActor } from '../actor.ts'
import type { Component } from '../component.ts'
import { ApiError, errorText } from '../errors.ts'
import { type DeviceStorage, freeName } from '../files/index.ts'
import type { JobContext } from '../jobs/index.ts'
import type { Logger } from '../log.ts'
import { HELPER_ERROR, HelperError, type MediaSupervisor, type Notifications } from '../media/index.ts'
import { syncFolder } from '../platform/index.ts'
import type { Catalogue } from './catalogue.ts'
import type { RecordingRow } from './row.ts'

export const EXPORT_FOLDER = '/media/data/exports'
/** Files under way: a name that no user can give. */
const UNDER_WAY = '.export-'
/** The index goes in front by copying the file once. */
const COPIES = 2
const MARGIN_BYTES = 64 * 1024 * 1024

export interface ExportRange {
  /** Milliseconds of the recording's own time. */
  readonly startMs: number
  readonly endMs: number
}

export interface Exported {
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
  private readonly claimed = new Set<string>()

  constructor(
    private readonly media: MediaSupervisor,
    private readonly catalogue: Catalogue,
    private readonly storage: DeviceStorage,
    private readonly log: Logger,
  ) {}

  /** What an earlier process left unfinished is of no use. */
  async start(): Promise<void> {
    const folder = this.storage.hostPath(EXPORT_FOLDER)
    const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') this.log.warn({ error: error.message }, 'exports cannot be listed')
      return []
    })
    await Promise.all(names.filter((name) => name.startsWith(UNDER_WAY)).map((name) => rm(join(folder, name), { force: true })))
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
    const folder = this.storage.hostPath(EXPORT_FOLDER)
    const id = this.nextId++
    await mkdir(folder, { recursive: true })
    const temporary = join(folder, `${UNDER_WAY}${id}.mp4`)
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
      context.signal.throwIfAborted()
      const filename = await this.publish(folder, temporary, stem)
      const exported = { filename, path: `${EXPORT_FOLDER}/${filename}`, duration_ms: done.duration_ms, size: done.size_bytes }
      this.enter(row, range, exported)
      return exported
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

  /** Whoever may not see the camera may not see what was copied of it either. */
  private enter(row: RecordingRow, { startMs }: ExportRange, { filename, path, duration_ms: duration, size }: Exported): void {
    const { video_codec, camera, resolution, fps, time_synced } = row
    this.catalogue.addMedia({
      media_type: 'backup',
      encoding: 'mp4',
      video_codec,
      audio_codec: row.audio_codec === 'pcm' ? 'aac' : row.audio_codec,
      filename,
      path,
      size,
      camera,
      timestamp_start: row.timestamp_start + startMs,
      duration,
      resolution,
      fps,
      time_synced,
      created_by: currentActor()?.username ?? null,
    })
  }

  private async publish(folder: string, temporary: string, stem: string): Promise<string> {
    const filename = freeName(folder, `${stem}.mp4`, this.claimed)
    const path = join(folder, filename)
    this.claimed.add(path)
    try {
      await rename(temporary, path)
      syncFolder(folder)
    } finally {
      this.claimed.delete(path)
    }
    return filename
  }
}

function exportError(error: unknown): unknown {
  if (!(error instanceof HelperError)) return error
  if (error.code === HELPER_ERROR.unsupported) return new ApiError('INVALID_FORMAT', error.message)
  if (error.code === HELPER_ERROR.busy) return new ApiError('SERVICE_UNAVAILABLE', 'Too many exports are running')
  if (error.data.errno === 'ENOSPC') return new ApiError('INSUFFICIENT_STORAGE', 'The storage is full')
  return error
}
