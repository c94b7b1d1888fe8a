/**
 * How a recording goes, whoever decides it, or one file of it: the files, then the row. That it is to go is noted first. What a crash, a medium
 * that is away or a database that is full leaves half done is finished as soon as that is possible.
 */
import { rm, stat } from 'node:fs/promises'
import { backoff } from '../backoff.ts'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { ApiError, errorText, NotFound } from '../errors.ts'
import type { DeviceStorage } from '../files/index.ts'
import type { Logger } from '../log.ts'
import type { Store, Table } from '../store/index.ts'
import { Told } from '../told.ts'
import type { Catalogue } from './catalogue.ts'
import type { NewRow, RecordingRow } from './row.ts'

const FIRST_RETRY_MS = 1000
const LAST_RETRY_MS = 300_000

export class Removal implements Component {
  private readonly begun: Table<number, true>
  /** By recording: the file that is about to go by itself. */
  private readonly files: Table<number, string>
  /** Recordings that are to be gone, and by path the files that may be. */
  private readonly half = new Set<number>()
  private readonly halfFiles = new Map<string, number>()
  private timer: NodeJS.Timeout | undefined
  private work: Promise<void> = Promise.resolve()
  private finishing = false
  private readonly told = new Told()
  private stopped = false

  constructor(
    private readonly store: Store,
    private readonly catalogue: Catalogue,
    private readonly storage: DeviceStorage,
    private readonly bus: Bus,
    private readonly log: Logger,
  ) {
    this.begun = store.table('removals')
    this.files = store.table('file_removals')
    catalogue.onRemove((id) => {
      this.begun.remove(id)
      this.files.remove(id)
    })
  }

  async start(): Promise<void> {
    for (const id of this.begun.keys()) this.half.add(id)
    for (const { key, value } of this.files.range()) this.halfFiles.set(value, key)
    this.work = this.finishAll(1)
    await this.work
  }

  async stop(): Promise<void> {
    this.stopped = true
    clearTimeout(this.timer)
    await this.work
  }

  /** Never throws; what is left is tried again. */
  private async finishAll(attempt: number): Promise<void> {
    this.finishing = true
    for (const id of this.half) {
      if (this.stopped) return
      if (await this.finishRecording(id)) this.half.delete(id)
    }
    for (const [path, id] of this.halfFiles) {
      if (this.stopped) return
      if (await this.finishFile(id, path)) this.halfFiles.delete(path)
    }
    this.finishing = false
    if (this.half.size + this.halfFiles.size === 0) this.told.allOver()
    this.finishLater(attempt)
  }

  private finishLater(attempt = 1): void {
    if (this.stopped || this.finishing || this.timer || this.half.size + this.halfFiles.size === 0) return
    this.timer = setTimeout(
      () => {
        this.timer = undefined
        this.work = this.finishAll(attempt + 1)
      },
      backoff(attempt, FIRST_RETRY_MS, LAST_RETRY_MS),
    )
  }

  /** `told` goes out with the event, such as the reason. */
  async remove(id: number, told: Readonly<Record<string, unknown>> = {}): Promise<RecordingRow> {
    const row = this.catalogue.get(id)
    if (!row) throw new NotFound(`recording ${id}`)
    if (row.state === 'recording')
      throw new ApiError('RECORDING_IN_PROGRESS', 'This recording is still running', `recording ${id}`)
    // Without its medium its files would stay, and nobody would know of them.
    if (!(await this.storage.reachable(row.path)))
      throw new ApiError('SERVICE_UNAVAILABLE', 'The medium of this recording is not there', row.path)
    this.note(() => this.begun.put(id, true))
    try {
      for (const { path } of row.parts) await rm(this.storage.hostPath(path), { force: true })
    } catch (error) {
      this.note(() => this.begun.remove(id))
      throw error
    }
    // Somebody else may have been quicker.
    if (!this.catalogue.get(id)) throw new NotFound(`recording ${id}`)
    try {
      this.catalogue.remove(id)
    } catch (error) {
      this.half.add(id)
      this.finishLater()
      throw error
    }
    this.tell('deleted', row, told)
    return row
  }

  /** A file is about to be deleted by itself. */
  noteFile(devicePath: string): void {
    const row = this.catalogue.byPath(devicePath)
    if (row) this.note(() => this.files.put(row.id, devicePath))
  }

  /** A file was deleted by itself: its part goes, and with the last part the recording. */
  forgetFile(devicePath: string): void {
    const row = this.catalogue.byPath(devicePath)
    if (!row) return
    if (row.state === 'recording')
      throw new ApiError('RECORDING_IN_PROGRESS', 'This recording is still running', `recording ${row.id}`)
    try {
      this.forgetPart(row, devicePath)
    } catch (error) {
      this.halfFiles.set(devicePath, row.id)
      this.finishLater()
      throw error
    }
  }

  private forgetPart(row: RecordingRow, devicePath: string): void {
    const parts = row.parts.filter(({ path }) => path !== devicePath)
    const [first] = parts
    if (!first) {
      this.catalogue.remove(row.id)
      this.tell('deleted', row, {})
      return
    }
    const duration = parts.reduce((sum, part) => sum + part.duration, 0)
    const size = parts.reduce((sum, part) => sum + part.size, 0)
    const change: Partial<NewRow> = { parts, duration, size, filename: first.filename, path: first.path }
    const changed = this.store.urgent(() => {
      this.files.remove(row.id)
      return this.catalogue.update(row.id, change)
    })
    this.tell('part_deleted', changed ?? row, { deleted: devicePath })
  }

  /** False: not now. */
  private async finishRecording(id: number): Promise<boolean> {
    try {
      if (this.catalogue.get(id)) await this.remove(id)
      else this.store.transaction(() => this.begun.remove(id))
      this.log.warn({ id }, 'interrupted removal of a recording finished')
      return true
    } catch (error) {
      this.cannotFinish({ id }, error)
      return false
    }
  }

  /** What was noted may not have happened; and nothing can be said while the medium is not there: false. */
  private async finishFile(id: number, path: string): Promise<boolean> {
    try {
      if (!(await this.storage.reachable(path))) return false
      const there = await stat(this.storage.hostPath(path)).catch(absent)
      if (there) this.store.transaction(() => this.files.remove(id))
      else this.forgetFile(path)
      return true
    } catch (error) {
      this.cannotFinish({ id, path }, error)
      return false
    }
  }

  /** A medium that is away may have many: the first one stands for them. */
  private cannotFinish(what: { readonly id: number; readonly path?: string }, error: unknown): void {
    const text = errorText(error)
    if (this.told.isNew(text, text)) this.log.error({ ...what, error: text }, 'an interrupted removal cannot be finished yet')
  }

  /** Only a crash needs it: a database that is full must not keep the space from being freed. */
  private note(write: () => void): void {
    try {
      this.store.urgent(write)
    } catch (error) {
      this.log.warn({ error: errorText(error) }, 'a removal cannot be noted')
    }
  }

  private tell(type: string, { id, camera, filename, path }: RecordingRow, more: Readonly<Record<string, unknown>>): void {
    this.bus.publish('recording', type, { id, camera, filename, path, ...more })
  }
}

function absent(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
  throw error
}
