/** The OpenAPI 3.0 document of a route table: every path in the device-reference form, and in the envelope form under `/api/v1/`. */
import { Type } from '@sinclair/typebox'
import { SESSION_COOKIE } from '../caller.ts'
import { ERROR_STATUS, type ErrorCode } from '../errors.ts'
import { type Json, toOpenApi } from './openapi-schema.ts'
import type { BinaryResponse, Route } from './route.ts'
import { isVersioned } from './router.ts'

/** Whatever a route says of itself, these can happen. */
const EVERYWHERE: readonly ErrorCode[] = ['INVALID_REQUEST', 'RATE_LIMITED', 'INTERNAL_ERROR']
const FROM_DISK: readonly ErrorCode[] = ['FILE_NOT_FOUND', 'PERMISSION_DENIED', 'RANGE_NOT_SATISFIABLE', 'SERVICE_UNAVAILABLE']
const WITH_CREDENTIALS: readonly ErrorCode[] = ['INVALID_CREDENTIALS', 'PERMISSION_DENIED']

export function openApiDocument(routes: readonly Route[], info: { readonly version: string }): Json {
  const paths = new Paths()
  for (const route of routes) paths.add(route.path, route, isVersioned(route.path))
  for (const route of routes) {
    if (route.path.startsWith('/api/') && !isVersioned(route.path)) paths.add(`/api/v1/${route.path.slice(5)}`, route, true)
  }
  return {
    openapi: '3.0.3',
    info: {
      title: 'Camera server',
      version: info.version,
      description:
        'Every path under `/api/` is also there under `/api/v1/`, with bodies in an envelope. `x-role` is the least role that an ' +
        'operation needs, in the order guest, viewer, operator, admin; `public` needs no credentials. GET paths answer HEAD too.',
    },
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name })),
    security: [{ bearer: [] }, { basic: [] }, { cookie: [] }, { token: [] }],
    paths: paths.items,
    components: { securitySchemes: SECURITY, schemas: SCHEMAS },
  }
}

const SECURITY: Json = {
  bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
  basic: { type: 'http', scheme: 'basic' },
  cookie: {
    type: 'apiKey',
    in: 'cookie',
    name: SESSION_COOKIE,
    description: 'Set by the login; writes must come from the same origin.',
  },
  token: { type: 'apiKey', in: 'query', name: 'token' },
}

const detail = { code: Type.String(), message: Type.String(), details: Type.String() }
const epochMs = Type.Integer({ description: 'Epoch milliseconds' })
const SCHEMAS: Json = {
  Error: toOpenApi(Type.Object({ error: Type.Object({ ...detail, timestamp: Type.String({ format: 'date-time' }) }) })),
  EnvelopeError: toOpenApi(
    Type.Object({ status: Type.Literal('error'), error: Type.Object({ ...detail, timestamp: epochMs }), timestamp: epochMs }),
  ),
  EnvelopeRateLimit: toOpenApi(
    Type.Object({ error: Type.String(), limit: Type.Integer(), period: Type.String(), retry_after: Type.Integer() }),
  ),
}

class Paths {
  readonly items: Record<string, Json> = {}
  /** Two templates that differ in names only are one path to OpenAPI; the first names count. */
  readonly #shapes = new Map<string, string>()

  add(path: string, route: Route, envelope: boolean): void {
    const plain = path.replaceAll('+}', '}')
    const shape = plain.replace(/\{[^}]*\}/g, '{}')
    const known = this.#shapes.get(shape) ?? plain
    this.#shapes.set(shape, known)
    this.items[known] ??= {}
    const item = this.items[known]
    const method = route.method.toLowerCase()
    // The table's own /api/v1 route comes before the one made from /api.
    if (item[method] === undefined) item[method] = operation(known, plain, route, envelope)
  }
}

function operation(known: string, plain: string, route: Route, envelope: boolean): Json {
  return {
    operationId: operationId(route.method, known),
    tags: [route.tag],
    summary: route.summary,
    ...(route.description !== undefined && { description: route.description }),
    'x-role': route.access,
    'x-rate-class': route.rate,
    ...(route.access === 'public' && { security: [] }),
    parameters: [...pathParameters(known, plain, route), ...queryParameters(route)],
    ...(route.body !== undefined && {
      requestBody: {
        required: route.bodyOptional !== true,
        content: { 'application/json': { schema: toOpenApi(route.body, 'input') } },
      },
    }),
    ...(route.upload !== undefined && {
      requestBody: { required: true, content: { 'multipart/form-data': { schema: toOpenApi(route.upload.form, 'input') } } },
    }),
    responses: { '200': success(route, envelope), ...parts(route), ...failures(route, envelope) },
  }
}

function operationId(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  return method.toLowerCase() + words.map((word) => word[0]?.toUpperCase() + word.slice(1)).join('')
}

function pathParameters(known: string, plain: string, route: Route): Json[] {
  const own = namesOf(plain)
  return namesOf(known).map((name, index) => {
    const schema = route.params?.properties[own[index] ?? name]
    return {
      name,
      in: 'path',
      required: true,
      ...described(schema === undefined ? { type: 'string' } : toOpenApi(schema, 'input')),
    }
  })
}

function namesOf(path: string): string[] {
  return [...path.matchAll(/\{([^}]*)\}/g)].map(([, name = '']) => name)
}

function queryParameters({ query }: Route): Json[] {
  if (query === undefined) return []
  const required: readonly string[] = query.required ?? []
  return Object.entries(query.properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name) && schema.default === undefined,
    ...described(toOpenApi(schema, 'input')),
  }))
}

/** A parameter carries the description beside its schema. */
function described({ description, ...schema }: Json): Json {
  return { ...(description !== undefined && { description }), schema }
}

function success({ response }: Route, envelope: boolean): Json {
  if (isBinary(response)) return binary(response)
  const schema = toOpenApi(response)
  const enveloped = {
    type: 'object',
    required: ['status', 'data', 'timestamp'],
    properties: { status: { type: 'string', enum: ['success'] }, data: schema, timestamp: toOpenApi(epochMs) },
  }
  return { description: 'Success', content: { 'application/json': { schema: envelope ? enveloped : schema } } }
}

/** What a request with `Range` or a condition may meet. */
function parts({ response }: Route): Json {
  if (!servesFile(response)) return {}
  const range = { 'Content-Range': { description: 'Which bytes of how many', schema: { type: 'string' } } }
  return {
    '206': { ...binary(response), description: 'The part that Range asks for', headers: range },
    '304': { description: "The client's copy is good still" },
  }
}

function servesFile(response: Route['response']): response is BinaryResponse {
  return isBinary(response) && response.file === true
}

function isBinary(response: Route['response']): response is BinaryResponse {
  return 'binary' in response
}

function binary(response: BinaryResponse): Json {
  return { description: 'Success', content: { [response.binary]: { schema: { type: 'string', format: 'binary' } } } }
}

function failures(route: Route, envelope: boolean): Json {
  const codes = new Set<ErrorCode>([
    ...EVERYWHERE,
    ...(route.access === 'public' ? [] : WITH_CREDENTIALS),
    ...(route.errors ?? []),
  ])
  if (route.access !== 'public' && route.beforePasswordChange !== true) codes.add('PASSWORD_CHANGE_REQUIRED')
  if (servesFile(route.response)) for (const code of FROM_DISK) codes.add(code)
  if (route.method !== 'GET') codes.add('PAYLOAD_TOO_LARGE')
  const byStatus = new Map<string, ErrorCode[]>()
  for (const code of codes) {
    const status = String(ERROR_STATUS[code])
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return Object.fromEntries([...byStatus].map(([status, list]) => [status, failure(status, list, envelope)]))
}

function failure(status: string, codes: readonly ErrorCode[], envelope: boolean): Json {
  const name = !envelope ? 'Error' : status === '429' ? 'EnvelopeRateLimit' : 'EnvelopeError'
  return {
    description: codes.join(', '),
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } },
  }
}
