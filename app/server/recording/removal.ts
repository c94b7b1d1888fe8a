/** How a recording goes, whoever decides it: its files, then its row. That it is to go is noted first: what a crash interrupts is finished. */
import { rm } from 'node:fs/promises'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { ApiError, errorText, NotFound } from '../errors.ts'
import type { DeviceStorage } from '../files/index.ts'
import type { Logger } from '../log.ts'
import type { Store, Table } from '../store/index.ts'
import type { Catalogue } from './catalogue.ts'
import type { RecordingRow } from './row.ts'

export class Removal implements Component {
  private readonly begun: Table<number, true>

  constructor(
    private readonly store: Store,
    private readonly catalogue: Catalogue,
    private readonly storage: DeviceStorage,
    private readonly bus: Bus,
    private readonly log: Logger,
  ) {
    this.begun = store.table('removals')
    catalogue.onRemove((id) => this.begun.remove(id))
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
    this.bus.publish('recording', 'deleted', { id, camera: row.camera, filename: row.filename, path: row.path, ...told })
    return row
  }
}
