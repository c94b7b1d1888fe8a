/** Tags: marks on the timeline of a recording, each in a category. `tag_markers` of the row counts them, and they go with it. */
import type { Bus } from '../bus.ts'
import { Conflict, InvalidRequest, NotFound } from '../errors.ts'
import type { Store, Table } from '../store/index.ts'
import { inTurns } from '../turns.ts'
import type { Catalogue } from './catalogue.ts'
import type { Categories, TagCategory } from './categories.ts'
import type { RecordingRow } from './row.ts'

export interface Tag {
  readonly id: number
  /** Id of a category. */
  readonly category: number
  /** Milliseconds into the recording. */
  readonly timestamp: number
  readonly title: string
  readonly note: string
  readonly createdBy: string
}

export interface NewTag {
  /** Name of a category. */
  readonly category: string
  readonly timestamp: number
  readonly title: string
  readonly note: string
  readonly createdBy: string
}

export type TagChange = Partial<Omit<NewTag, 'createdBy'>>

const MAX_TAGS = 1000
const MOVE_BATCH = 200
const LAST = Number.MAX_SAFE_INTEGER

export class Tags {
  private readonly tags: Table<[recording: number, tag: number], Tag>
  private readonly byCategory: Table<[category: number, recording: number, tag: number], true>

  constructor(
    private readonly store: Store,
    private readonly catalogue: Catalogue,
    readonly categories: Categories,
    private readonly bus: Bus,
  ) {
    this.tags = store.table('tags')
    this.byCategory = store.table('tags_by_category')
    if (this.byCategory.count({ limit: 1 }) === 0) this.fillIndex()
    catalogue.onRemove((id) => this.removeAll(id))
  }

  /** In the order of the timeline. */
  list(recording: number): Tag[] {
    const range = this.tags.range({ start: [recording, 0], end: [recording, LAST] })
    return [...range].map(({ value }) => value).sort((a, b) => a.timestamp - b.timestamp || a.id - b.id)
  }

  add({ id: recording }: Pick<RecordingRow, 'id'>, { category, ...tag }: NewTag): Tag {
    const { id: known } = this.categories.named(category)
    const added = this.store.transaction(() => {
      const row = this.taggable(recording, tag.timestamp)
      if (this.count(recording) >= MAX_TAGS) throw new Conflict(`A recording has at most ${MAX_TAGS} tags`)
      const fresh = { id: this.store.nextId('tags'), category: known, ...tag }
      this.put(row.id, fresh)
      this.recount(recording)
      return fresh
    })
    this.publish('tagged', recording, added)
    return added
  }

  change(recording: number, id: number, { category, ...change }: TagChange): Tag {
    const named = category === undefined ? {} : { category: this.categories.named(category).id }
    const changed = this.store.transaction(() => {
      const before = this.get(recording, id)
      const tag = { ...before, ...change, ...named }
      if (change.timestamp !== undefined) this.taggable(recording, tag.timestamp)
      this.byCategory.remove([before.category, recording, id])
      this.put(recording, tag)
      return tag
    })
    this.publish('tag_changed', recording, changed)
    return changed
  }

  remove(recording: number, id: number): void {
    const removed = this.store.urgent(() => {
      const tag = this.get(recording, id)
      this.tags.remove([recording, id])
      this.byCategory.remove([tag.category, recording, id])
      this.recount(recording)
      return tag
    })
    this.publish('untagged', recording, removed)
  }

  /** The recordings that have a tag of a category, when they are easily told: null beyond `most` tags. */
  recordingsIn(category: number, most: number): number[] | null {
    const range = { start: [category, 0, 0], end: [category, LAST, LAST] } as const
    const keys = [...this.byCategory.keys({ ...range, limit: most + 1 } as never)]
    return keys.length > most ? null : [...new Set(keys.map(([, recording]) => recording))]
  }

  /** Refused while tags are in the category, unless they may move to another one. */
  async removeCategory(id: number, moveTo?: number): Promise<TagCategory> {
    this.categories.get(id)
    if (moveTo !== undefined) {
      if (moveTo === id) throw new InvalidRequest('query.move_to', 'The tags must move to another category')
      this.categories.get(moveTo)
      for await (const _ of inTurns(this.moving(id, moveTo)));
    }
    return this.categories.remove(id, () => {
      if (this.recordingsIn(id, 0) === null) throw new Conflict('Tags are in this category', 'move_to names where they go')
    })
  }

  private *moving(from: number, to: number): Generator<number> {
    const range = { start: [from, 0, 0], end: [from, LAST, LAST], limit: MOVE_BATCH } as never
    for (let keys = [...this.byCategory.keys(range)]; keys.length > 0; keys = [...this.byCategory.keys(range)]) {
      this.store.transaction(() => {
        this.categories.get(to)
        for (const [, recording, id] of keys) {
          this.byCategory.remove([from, recording, id])
          const tag = this.tags.get([recording, id])
          if (tag) this.put(recording, { ...tag, category: to })
        }
      })
      yield keys.length
    }
  }

  private get(recording: number, id: number): Tag {
    const tag = this.tags.get([recording, id])
    if (!tag) throw new NotFound(`tag ${id} of recording ${recording}`)
    return tag
  }

  /** A running recording has no end yet. */
  private taggable(recording: number, timestamp: number): RecordingRow {
    const row = this.catalogue.get(recording)
    if (!row) throw new NotFound(`recording ${recording}`)
    if (row.state !== 'recording' && timestamp > row.duration) {
      throw new InvalidRequest('body.timestamp', `The recording is ${row.duration} ms long`)
    }
    return row
  }

  private put(recording: number, tag: Tag): void {
    this.tags.put([recording, tag.id], tag)
    this.byCategory.put([tag.category, recording, tag.id], true)
  }

  private removeAll(recording: number): void {
    for (const { id, category } of this.list(recording)) {
      this.tags.remove([recording, id])
      this.byCategory.remove([category, recording, id])
    }
  }

  private count(recording: number): number {
    return this.tags.count({ start: [recording, 0], end: [recording, LAST] })
  }

  private recount(recording: number): void {
    this.catalogue.update(recording, { tag_markers: this.count(recording) })
  }

  /** Tags of an earlier schema. */
  private fillIndex(): void {
    this.store.urgent(() => {
      for (const { key, value } of this.tags.range()) this.byCategory.put([value.category, key[0], value.id], true)
    })
  }

  private publish(type: string, recording: number, tag: Tag): void {
    const row = this.catalogue.get(recording)
    if (!row) return
    const { filename, path, camera } = row
    const told = { tag: tag.id, category: tag.category, title: tag.title, timestamp_ms: tag.timestamp }
    this.bus.publish('recording', type, { id: recording, camera, filename, path, ...told })
  }
}
