/** How a recording goes, whoever decides it: its files, then its row. A crash between the two leaves a row that can be removed again. */
import { rm } from 'node:fs/promises'
import type { Bus } from '../bus.ts'
import { ApiError, NotFound } from '../errors.ts'
import type { DeviceStorage } from '../files/index.ts'
import type { Catalogue } from './catalogue.ts'
import type { RecordingRow } from './row.ts'

export class Removal {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly storage: DeviceStorage,
    private readonly bus: Bus,
  ) {}

  /** `told` goes out with the event, such as the reason. */
  async remove(id: number, told: Readonly<Record<string, unknown>> = {}): Promise<RecordingRow> {
    const row = this.catalogue.get(id)
    if (!row) throw new NotFound(`recording ${id}`)
    if (row.state === 'recording')
      throw new ApiError('RECORDING_IN_PROGRESS', 'This recording is still running', `recording ${id}`)
    for (const { path } of row.parts) await rm(this.storage.hostPath(path), { force: true })
    this.catalogue.remove(id)
    this.bus.publish('recording', 'deleted', { id, camera: row.camera, filename: row.filename, path: row.path, ...told })
    return row
  }
}
