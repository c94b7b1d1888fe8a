import type { Route } from './route.ts'

export function openApiDocument(routes: readonly Route[], info: { readonly version: string }): Record<string, unknown> {
  return { openapi: '3.0.3', info: { title: 'Camera server', version: info.version }, paths: {}, count: routes.length }
}
