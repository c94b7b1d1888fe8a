/** The categories of tags: read by viewers, managed by admins. */
import { Type } from '@sinclair/typebox'
import { type Route, route } from '../http/index.ts'
import { TagCategorySchema, type Tags } from '../recording/index.ts'
import { closed, Success } from './schemas.ts'

const { id, name } = TagCategorySchema.properties
const Fields = { name, color: Type.String({ pattern: '^#[0-9a-fA-F]{6}$', examples: ['#1e88e5'] }) }
const Params = Type.Object({ id })
const Answer = Type.Object({ success: Type.Boolean(), category: TagCategorySchema })

export function tagCategoryRoutes(tags: Tags): Route[] {
  const shared = { rate: 'api', tag: 'Tags' } as const
  return [
    route({
      ...shared,
      method: 'GET',
      path: '/api/tag-categories',
      access: 'viewer',
      summary: 'The categories of tags',
      response: Type.Object({ categories: Type.Array(TagCategorySchema), total: Type.Integer() }),
      handler: () => {
        const categories = tags.categories.list()
        return { categories, total: categories.length }
      },
    }),
    route({
      ...shared,
      method: 'POST',
      path: '/api/tag-categories',
      access: 'admin',
      summary: 'Add a category',
      body: Type.Object(Fields, closed),
      response: Answer,
      errors: ['CONFLICT'],
      handler: ({ body }) => ({ success: true, category: tags.categories.create(body) }),
    }),
    route({
      ...shared,
      method: 'PUT',
      path: '/api/tag-categories/{id}',
      access: 'admin',
      summary: 'Rename or recolour a category',
      params: Params,
      body: Type.Partial(Type.Object(Fields, closed), { ...closed, minProperties: 1 }),
      response: Answer,
      errors: ['CONFLICT', 'NOT_FOUND'],
      handler: ({ params, body }) => ({ success: true, category: tags.categories.update(params.id, body) }),
    }),
    route({
      ...shared,
      method: 'DELETE',
      path: '/api/tag-categories/{id}',
      access: 'admin',
      summary: 'Remove a category; its tags, if it has any, must move to another one',
      params: Params,
      query: Type.Object({ move_to: Type.Optional(id) }, closed),
      response: Success,
      errors: ['CONFLICT', 'NOT_FOUND'],
      handler: async ({ params, query }) => {
        await tags.removeCategory(params.id, query.move_to)
        return { success: true }
      },
    }),
  ]
}
