/** What is recorded already: looked up, tagged, deleted. */
import { NotFound } from '../errors.ts'
import type { Catalogue, ListQuery } from './catalogue.ts'
import type { Removal } from './removal.ts'
import type { RecordingRow } from './row.ts'

export class Library {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly removal: Removal,
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
    this.removal.forgetFile(devicePath)
  }
}
