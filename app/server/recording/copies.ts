/** What waits to be copied and what has been, in the database. Whatever leaves the catalogue leaves the queue in the same transaction. */
import { setImmediate as breathe } from 'node:timers/promises'
import type { Store, Table } from '../store/index.ts'
import type { Catalogue } from './catalogue.ts'
import { COPY_PLACES, type CopyPlace } from './places.ts'
import { type RecordingPart, type RecordingRow, VIDEO_TYPES } from './row.ts'

type Key = [place: CopyPlace, id: number]

export interface CopyRecord {
  /** Device path of the place that it was copied to. */
  readonly root: string
  /** Id of the entry that the copy has in the catalogue. */
  readonly entry: number
  readonly parts: readonly RecordingPart[]
}

const MAX_ID = Number.MAX_SAFE_INTEGER
const BATCH = 500

export class Copies {
  private readonly queue: Table<Key, true>
  private readonly copied: Table<Key, CopyRecord>
  /** The path that each place had when it was last seen: everything has been put into its queue. */
  private readonly known: Table<CopyPlace, string>
  private readonly meeting = new Map<CopyPlace, string>()

  constructor(
    private readonly store: Store,
    private readonly catalogue: Catalogue,
  ) {
    this.queue = store.table('replication_queue')
    this.copied = store.table('replication_copies')
    this.known = store.table('replication_places')
    catalogue.onRemove((id) => {
      for (const place of COPY_PLACES) {
        this.queue.remove([place, id])
        this.copied.remove([place, id])
      }
    })
  }

  isKnown(place: CopyPlace, path: string): boolean {
    return this.known.get(place) === path || this.meeting.get(place) === path
  }

  /** The place is there: at the first time, all that is recorded already waits for it. A large catalogue takes turns with everything else. */
  async meet(place: CopyPlace, path: string, signal: AbortSignal): Promise<void> {
    if (this.known.get(place) === path) return
    for (let after = 0; ; ) {
      const rows = this.catalogue.upFrom(after, BATCH)
      const wanted = rows.filter(({ state, media_type }) => state === 'ready' && VIDEO_TYPES.includes(media_type))
      this.enqueue(
        place,
        path,
        wanted.map(({ id }) => id),
      )
      after = rows.at(-1)?.id ?? 0
      if (rows.length < BATCH) break
      // What finishes meanwhile is enqueued by whoever hears of it.
      this.meeting.set(place, path)
      await breathe()
      if (signal.aborted) return
    }
    this.store.transaction(() => this.known.put(place, path))
    this.meeting.delete(place)
  }

  enqueue(place: CopyPlace, path: string, ids: readonly number[]): void {
    const missing = ids.filter((id) => this.copied.get([place, id])?.root !== path && !this.queue.has([place, id]))
    if (missing.length === 0) return
    this.store.transaction(() => {
      for (const id of missing) this.queue.put([place, id], true)
    })
  }

  /** Oldest first, behind `after`; read one by one, so that what comes meanwhile is found too. */
  *waiting(place: CopyPlace, after = 0): Generator<number> {
    for (;;) {
      const [key] = [...this.queue.keys({ start: [place, after + 1], end: [place, MAX_ID], limit: 1 })]
      if (!key) return
      after = key[1]
      yield after
    }
  }

  waits(place: CopyPlace, id: number): boolean {
    return this.queue.has([place, id])
  }

  drop(place: CopyPlace, id: number): void {
    this.store.transaction(() => this.queue.remove([place, id]))
  }

  get(place: CopyPlace, id: number): CopyRecord | undefined {
    return this.copied.get([place, id])
  }

  counts(place: CopyPlace): { queued: number; copied: number } {
    const range = { start: [place, 0] as Key, end: [place, MAX_ID] as Key }
    return { queued: this.queue.count(range), copied: this.copied.count(range) }
  }

  /** Enters the copy into the catalogue as well. False: the recording was deleted while it was copied. */
  done(place: CopyPlace, root: string, original: RecordingRow, parts: readonly RecordingPart[]): boolean {
    return this.store.transaction(() => {
      const row = this.catalogue.get(original.id)
      const [first] = parts
      if (!row || !first) return false
      // Tags of the copy are its own.
      const { id: _, tag_markers: _tags, ...columns } = row
      const size = parts.reduce((sum, part) => sum + part.size, 0)
      const before = this.copied.get([place, row.id])
      const copy = {
        ...columns,
        media_type: 'backup',
        filename: first.filename,
        path: first.path,
        size,
        parts,
      } as const
      const known = before && this.catalogue.get(before.entry)
      const entry = known ? before.entry : this.catalogue.addMedia(copy).id
      if (known) this.catalogue.update(entry, copy)
      this.copied.put([place, row.id], { root, entry, parts })
      this.queue.remove([place, row.id])
      return true
    })
  }
}
