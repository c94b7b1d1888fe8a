/** A route for tests of what does not look at its handler. */
import { Type } from '@sinclair/typebox'
import { InvalidRequest } from '../../../app/server/errors.ts'
import type { Method, Route } from '../../../app/server/http/route.ts'

export function tableRoute(method: Method, path: string, more: Partial<Route> = {}): Route {
  return {
    method,
    path,
    access: 'guest',
    rate: 'api',
    tag: 'test',
    summary: `${method} ${path}`,
    response: Type.Object({}),
    handler: () => ({}),
    ...more,
  }
}

/** The field that is complained of; undefined where nothing is. */
export function refused(action: () => unknown): string | undefined {
  try {
    action()
    return undefined
  } catch (error) {
    if (error instanceof InvalidRequest) return error.details
    throw error
  }
}
