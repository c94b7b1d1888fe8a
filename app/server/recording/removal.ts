/** How a recording goes, whoever decides it, or one file of it: the files, then the row. That it is to go is noted first: what a crash interrupts is finished. */
import { rm, stat } from 'node:fs/promises'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { ApiError, errorText, NotFound } from '../errors.ts'
import type { DeviceStorage } from '../files/index.ts'
import type { Logger } from '../log.ts'
import type { Store, Table } from '../store/index.ts'
import type { Catalogue } from './catalogue.ts'
import type { NewRow, RecordingRow } from './row.ts'

export class Removal implements Component {
  private readonly begun: Table<number, true>
  /** By recording: the file that is about to go by itself. */
  private readonly files: Table<number, string>

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
    for (const id of [...this.begun.keys()]) {
      try {
        await this.remove(id)
        this.log.warn({ id }, 'interrupted removal of a recording finished')
      } catch (error) {
        this.log.error({ id, error: errorText(error) }, 'interrupted removal of a recording cannot be finished')
      }
    }
    for (const { key, value } of [...this.files.range()]) await this.finishFile(key, value)
  }

  stop(): void {}

  /** `told` goes out with the event, such as the reason. */
  async remove(id: number, told: Readonly<Record<string, unknown>> = {}): Promise<RecordingRow> {
    const row = this.catalogue.get(id)
    if (!row) throw new NotFound(`recording ${id}`)
    if (row.state === 'recording')
      throw new ApiError('RECORDING_IN_PROGRESS', 'This recording is still running', `recording ${id}`)
    // Without its medium its files would stay, and nobody would know of them.
    if (!(await this.storage.reachable(row.path)))
      throw new ApiError('SERVICE_UNAVAILABLE', 'The medium of this recording is not there', row.path)
    this.store.transaction(() => this.begun.put(id, true))
    try {
      for (const { path } of row.parts) await rm(this.storage.hostPath(path), { force: true })
    } catch (error) {
      this.store.transaction(() => this.begun.remove(id))
      throw error
    }
    // Somebody else may have been quicker.
    if (!this.catalogue.get(id)) throw new NotFound(`recording ${id}`)
    this.catalogue.remove(id)
    this.tell('deleted', row, told)
    return row
  }

  /** A file is about to be deleted by itself. */
  noteFile(devicePath: string): void {
    const row = this.catalogue.byPath(devicePath)
    if (row) this.store.transaction(() => this.files.put(row.id, devicePath))
  }

  /** A file was deleted by itself: its part goes, and with the last part the recording. */
  forgetFile(devicePath: string): void {
    const row = this.catalogue.byPath(devicePath)
    if (!row) return
    if (row.state === 'recording')
      throw new ApiError('RECORDING_IN_PROGRESS', 'This recording is still running', `recording ${row.id}`)
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
    const changed = this.store.transaction(() => {
      this.files.remove(row.id)
      return this.catalogue.update(row.id, change)
    })
    this.tell('part_deleted', changed ?? row, { deleted: devicePath })
  }

  /** What was noted may not have happened; and nothing can be said while the medium is not there. */
  private async finishFile(id: number, path: string): Promise<void> {
    try {
      if (!(await this.storage.reachable(path))) return
      const there = await stat(this.storage.hostPath(path)).catch(absent)
      if (there) this.store.transaction(() => this.files.remove(id))
      else this.forgetFile(path)
    } catch (error) {
      this.log.error({ id, path, error: errorText(error) }, 'interrupted removal of a file cannot be finished')
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
