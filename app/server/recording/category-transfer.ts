/** The tag categories in a backup: by their names, for the numbers may mean others on another device. Those here stay. */
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { InvalidRequest } from '../errors.ts'
import { type Categories, TagCategorySchema } from './categories.ts'

const Entries = Type.Array(TagCategorySchema, { maxItems: 100 })

export class CategoryTransfer {
  /** Key in the file. */
  readonly name = 'tag_categories'

  constructor(private readonly categories: Categories) {}

  collect() {
    return this.categories.list()
  }

  prepare(value: unknown) {
    if (!Value.Check(Entries, value)) {
      const error = Value.Errors(Entries, value).First()
      const field = `backup.content.tag_categories${(error?.path ?? '').replaceAll('/', '.')}`
      throw new InvalidRequest(field, error?.message ?? 'Invalid')
    }
    const changed = value.filter(({ name, color }) => this.categories.byName(name)?.color !== color.toLowerCase())
    return {
      changes: changed.map(({ name }) => `tag category ${name}`),
      skipped: [],
      write: () => {
        for (const { name, color } of changed) {
          const known = this.categories.byName(name)
          if (known) this.categories.update(known.id, { color })
          else this.categories.create({ name, color })
        }
      },
      act: () => {},
    }
  }
}
