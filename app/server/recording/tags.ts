/** Tags: marks on the timeline of a recording, each in a category. `tag_markers` of the row counts them. */
import { InvalidRequest } from '../errors.ts'
import type { Store, Table } from '../store/index.ts'
import type { Catalogue } from './catalogue.ts'
import type { RecordingRow } from './row.ts'

export interface TagCategory {
  readonly id: number
  readonly name: string
  readonly color: string
}

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

/** What a new device knows. */
const FIRST_CATEGORIES: readonly Omit<TagCategory, 'id'>[] = [
  { name: 'event', color: '#1e88e5' },
  { name: 'person', color: '#43a047' },
  { name: 'vehicle', color: '#fb8c00' },
  { name: 'alarm', color: '#e53935' },
  { name: 'note', color: '#8e24aa' },
]

export class Tags {
  private readonly categories: Table<number, TagCategory>
  private readonly tags: Table<[recording: number, tag: number], Tag>

  constructor(
    private readonly store: Store,
    private readonly catalogue: Catalogue,
  ) {
    this.categories = store.table('tag_categories')
    this.tags = store.table('tags')
    if (this.categories.count({ limit: 1 }) === 0) this.fillCategories()
  }

  add(recording: RecordingRow, { category, ...tag }: NewTag): Tag {
    const known = this.listCategories()
    const found = known.find(({ name }) => name.toLowerCase() === category.toLowerCase())
    if (!found) throw new InvalidRequest('body.category', `The categories are ${known.map(({ name }) => name).join(', ')}`)
    return this.store.transaction(() => {
      const added = { id: this.store.nextId('tags'), category: found.id, ...tag }
      this.tags.put([recording.id, added.id], added)
      const count = this.tags.count({ start: [recording.id, 0], end: [recording.id, Number.MAX_SAFE_INTEGER] })
      this.catalogue.update(recording.id, { tag_markers: count })
      return added
    })
  }

  /** Goes with its recording. */
  removeAll(recording: number): void {
    const keys = [...this.tags.keys({ start: [recording, 0], end: [recording, Number.MAX_SAFE_INTEGER] })]
    for (const key of keys) this.tags.remove(key)
  }

  private listCategories(): TagCategory[] {
    return [...this.categories.range()].map(({ value }) => value)
  }

  private fillCategories(): void {
    this.store.transaction(() => {
      for (const category of FIRST_CATEGORIES) {
        const id = this.store.nextId('tag_categories')
        this.categories.put(id, { id, ...category })
      }
    })
  }
}
