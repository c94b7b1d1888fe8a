/** The tag categories in a backup: by their names, for the numbers may mean others on another device. Those here stay. */
import { isDeepStrictEqual } from 'node:util'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { Conflict, InvalidRequest } from '../errors.ts'
import { type Categories, type StagedCategories, TagCategorySchema } from './categories.ts'

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
    const known = this.categories.list()
    let staged: StagedCategories = []
    const changed = value.filter(({ name, color }) => this.categories.byName(name)?.color !== color.toLowerCase())
    return {
      changes: changed.map(({ name }) => `tag category ${name}`),
      skipped: [],
      write: () => {
        if (!isDeepStrictEqual(this.categories.list(), known))
          throw new Conflict('The tag categories were changed meanwhile', 'tag_categories')
        staged = this.categories.stage(changed)
      },
      act: () => this.categories.tell(staged),
    }
  }
}
