/** What is recorded already: looked up, tagged, deleted. */
import { ApiError, NotFound } from '../errors.ts'
import type { Catalogue, ListQuery } from './catalogue.ts'
import type { Removal } from './removal.ts'
import type { NewRow, RecordingRow } from './row.ts'

export class Library {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly removal: Removal,
    private readonly publish: (type: string, row: RecordingRow, more: Record<string, unknown>) => void,
  ) {}

  list(query: ListQuery): { rows: RecordingRow[]; total: number } {
    return this.catalogue.list(query)
  }

  row(id: number): RecordingRow {
    const row = this.catalogue.get(id)
    if (!row) throw new NotFound(`recording ${id}`)
    return row
  }

  remove(id: number): Promise<RecordingRow> {
    return this.removal.remove(id)
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
      this.publish('deleted', row, {})
      return
    }
    const duration = parts.reduce((sum, part) => sum + part.duration, 0)
    const size = parts.reduce((sum, part) => sum + part.size, 0)
    const change: Partial<NewRow> = { parts, duration, size, filename: first.filename, path: first.path }
    const changed = this.catalogue.update(row.id, change) ?? row
    this.publish('part_deleted', changed, { deleted: devicePath })
  }
}
