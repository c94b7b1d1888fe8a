/** The route that hands out the description of all routes, itself included. */
import { Type } from '@sinclair/typebox'
import { openApiDocument } from './openapi.ts'
import { type Route, route } from './route.ts'

export function openApiRoute(routes: readonly Route[], info: { readonly version: string }): Route {
  let document: unknown
  const own: Route = route({
    method: 'GET',
    path: '/api/openapi.json',
    access: 'guest',
    rate: 'api',
    tag: 'Documentation',
    summary: 'This description of the API (OpenAPI 3.0)',
    response: Type.Record(Type.String(), Type.Unknown()),
    handler: () => {
      document ??= openApiDocument([...routes, own], info)
      return document
    },
  })
  return own
}
