/**
 * The categories of tags. Admins manage them; they live in the database and, because a factory reset wipes that and must spare them, in a
 * file of their own beside it. The database counts; the file fills an empty one.
 */
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { ApiError, Conflict, errorText, InvalidRequest, NotFound } from '../errors.ts'
import type { Logger } from '../log.ts'
import { ensureFolder, writeFileAtomic } from '../platform/index.ts'
import type { Store, Table } from '../store/index.ts'

export const TagCategorySchema = Type.Object(
  {
    id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    name: Type.String({ minLength: 1, maxLength: 64 }),
    color: Type.String({ pattern: '^#[0-9a-fA-F]{6}$' }),
  },
  { additionalProperties: false },
)

export interface TagCategory {
  readonly id: number
  readonly name: string
  /** `#rrggbb`. */
  readonly color: string
}

/** Stored, and not told yet. */
export type StagedCategories = readonly { readonly event: string; readonly category: TagCategory }[]

const MAX_CATEGORIES = 100
const FileSchema = Type.Object({ categories: Type.Array(TagCategorySchema, { maxItems: MAX_CATEGORIES }) })

/** What a new device knows. */
const FIRST_CATEGORIES: readonly TagCategory[] = [
  { id: 1, name: 'event', color: '#1e88e5' },
  { id: 2, name: 'person', color: '#43a047' },
  { id: 3, name: 'vehicle', color: '#fb8c00' },
  { id: 4, name: 'alarm', color: '#e53935' },
  { id: 5, name: 'note', color: '#8e24aa' },
]

export class Categories implements Component {
  private readonly table: Table<number, TagCategory>

  constructor(
    private readonly store: Store,
    /** The file that a factory reset spares. */
    private readonly file: string,
    private readonly bus: Bus,
    private readonly log: Logger,
  ) {
    this.table = store.table('tag_categories')
  }

  start(): void {
    if (this.table.count({ limit: 1 }) === 0) {
      const known = this.fromFile() ?? FIRST_CATEGORIES
      this.store.urgent(() => {
        for (const category of known) {
          this.table.put(category.id, category)
          this.store.useId('tag_categories', category.id)
        }
      })
    }
    try {
      if (this.text() !== readText(this.file)) this.writeFile()
    } catch (error) {
      this.log.error({ error: errorText(error) }, 'the copy of the tag categories cannot be written')
    }
  }

  stop(): void {}

  list(): TagCategory[] {
    return [...this.table.range()].map(({ value }) => value)
  }

  get(id: number): TagCategory {
    const category = this.table.get(id)
    if (!category) throw new NotFound(`tag category ${id}`)
    return category
  }

  /** Upper and lower case are the same. */
  byName(name: string): TagCategory | undefined {
    return this.list().find((category) => folded(category.name) === folded(name))
  }

  /** The category of that name, or the refusal that names those that there are. */
  named(name: string): TagCategory {
    const found = this.byName(name)
    if (found) return found
    throw new InvalidRequest(
      'body.category',
      `The categories are ${this.list()
        .map((known) => known.name)
        .join(', ')}`,
    )
  }

  create({ name, color }: Omit<TagCategory, 'id'>): TagCategory {
    return this.change('tag_category_created', () => this.add(name, color))
  }

  update(id: number, { name, color }: Partial<Omit<TagCategory, 'id'>>): TagCategory {
    return this.change('tag_category_changed', () => {
      const before = this.get(id)
      const changed = {
        id,
        name: name === undefined ? before.name : this.freeName(name, id),
        color: color?.toLowerCase() ?? before.color,
      }
      this.table.put(id, changed)
      return changed
    })
  }

  /** Into the table alone, by name: `tell` follows when the transaction around it is stored. */
  stage(entries: readonly Omit<TagCategory, 'id'>[]): StagedCategories {
    return entries.map(({ name, color }) => {
      const known = this.byName(name)
      if (!known) return { event: 'tag_category_created', category: this.add(name, color) }
      const category = { ...known, color: color.toLowerCase() }
      this.table.put(known.id, category)
      return { event: 'tag_category_changed', category }
    })
  }

  /** A file that cannot be written now is written by the next start. */
  tell(staged: StagedCategories): void {
    if (staged.length === 0) return
    this.bus.emit('state', { key: 'tagCategories', value: this.list() })
    for (const { event, category } of staged) this.bus.publish('config', event, { ...category })
    this.writeFile()
  }

  /** `unused` throws when something still refers to it; it is asked within the transaction. */
  remove(id: number, unused: () => void): TagCategory {
    return this.change('tag_category_removed', () => {
      const category = this.get(id)
      unused()
      this.table.remove(id)
      return category
    })
  }

  /** Table and file change together: when the file cannot be written, nothing has changed. */
  private change(event: string, work: () => TagCategory): TagCategory {
    const category = this.store.transaction(() => {
      const result = work()
      this.writeFile()
      return result
    })
    this.bus.emit('state', { key: 'tagCategories', value: this.list() })
    this.bus.publish('config', event, { ...category })
    return category
  }

  private add(name: string, color: string): TagCategory {
    if (this.table.count() >= MAX_CATEGORIES) throw new Conflict(`There are ${MAX_CATEGORIES} categories already`)
    const created = { id: this.store.nextId('tag_categories'), name: this.freeName(name), color: color.toLowerCase() }
    this.table.put(created.id, created)
    return created
  }

  private freeName(name: string, own?: number): string {
    const clean = name.normalize('NFC').trim()
    if (clean === '' || /\p{Cc}/u.test(clean)) throw new InvalidRequest('body.name', 'The name must be visible text')
    const other = this.byName(clean)
    if (other && other.id !== own) throw new Conflict(`There is a category ${other.name} already`, 'name')
    return clean
  }

  private text(): string {
    return `${JSON.stringify({ categories: this.list() }, null, 2)}\n`
  }

  private writeFile(): void {
    try {
      ensureFolder(dirname(this.file))
      writeFileAtomic(this.file, this.text(), 0o640)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      throw new ApiError('INSUFFICIENT_STORAGE', 'The disk is full')
    }
  }

  /** Undefined where there is no file, or none that can be used. */
  private fromFile(): readonly TagCategory[] | undefined {
    try {
      const text = readText(this.file)
      if (text === undefined) return undefined
      const content: unknown = JSON.parse(text)
      if (!Value.Check(FileSchema, content)) throw new Error('not a list of categories')
      return content.categories
    } catch (error) {
      this.log.error({ error: errorText(error) }, 'the copy of the tag categories cannot be read')
      return undefined
    }
  }
}

function folded(name: string): string {
  return name.normalize('NFC').trim().toLowerCase()
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
