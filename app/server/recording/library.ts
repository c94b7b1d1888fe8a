/** What the catalogue has, what is being recorded included: looked up, deleted, and known by its files. */
import { NotFound } from '../errors.ts'
import type { DeviceStorage } from '../files/index.ts'
import type { Catalogue } from './catalogue.ts'
import { partIndex } from './parts.ts'
import type { Removal } from './removal.ts'
import type { RecordingRow } from './row.ts'
import type { Active, Slots } from './slots.ts'

export class Library {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly removal: Removal,
    private readonly storage: DeviceStorage,
    private readonly slots: Slots,
  ) {}

  row(id: number): RecordingRow {
    const row = this.catalogue.get(id)
    if (!row) throw new NotFound(`recording ${id}`)
    return row
  }

  running(): RecordingRow[] {
    return this.catalogue.inState('recording')
  }

  /** Of a recording's first part, or of any of its parts. */
  hostPath({ path }: Pick<RecordingRow, 'path'>): string {
    return this.storage.hostPath(path)
  }

  async remove(id: number): Promise<void> {
    await this.removal.remove(id)
  }

  /** The recording that a file of the device storage belongs to. */
  ownerOf(devicePath: string): RecordingRow | undefined {
    return this.beingWritten(devicePath)?.row ?? this.catalogue.byPath(devicePath)
  }

  /** A file of the storage is about to be deleted: should a crash come between, the next start forgets it. */
  noteFile(devicePath: string): void {
    this.removal.noteFile(devicePath)
  }

  /** A file of the storage was deleted: its part goes, and with the last part the recording. */
  forgetFile(devicePath: string): void {
    this.removal.forgetFile(devicePath)
  }

  /** Also by a part that the catalogue does not know yet. */
  private beingWritten(devicePath: string): Active | undefined {
    return this.slots.running().find(({ row }) => partIndex(row.path, devicePath) !== null)
  }
}
