/** Input against its schemas: texts of params and query are coerced, unknown keys refused, defaults filled in, errors named by field. */
import { FormatRegistry, Kind, type TObject, type TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { InvalidRequest } from '../errors.ts'
import { coerce } from './coerce.ts'
import type { Route } from './route.ts'
import { close } from './schema.ts'

const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/
// TypeBox refuses every value of a format that it does not know.
FormatRegistry.Set('date-time', (text) => DATE_TIME.test(text) && !Number.isNaN(Date.parse(text)))
FormatRegistry.Set('password', () => true)
FormatRegistry.Set('int64', (text) => /^-?\d{1,19}$/.test(text))

const EMPTY: Readonly<Record<string, never>> = Object.freeze({})

/** Checks values of one schema; compiled at the first use, so that 200 routes cost nothing at the start. */
class Checker {
  #compiled: TypeCheck<TSchema> | undefined
  readonly #schema: TSchema
  readonly #hasDefaults: boolean

  constructor(
    schema: TSchema,
    readonly name: 'params' | 'query' | 'body',
  ) {
    this.#schema = close(schema)
    this.#hasDefaults = JSON.stringify(schema).includes('"default":')
  }

  check(value: unknown): unknown {
    this.#compiled ??= TypeCompiler.Compile(this.#schema)
    const whole = this.#hasDefaults ? Value.Default(this.#schema, value) : value
    if (this.#compiled.Check(whole)) return whole
    const error = clearest(this.#compiled.Errors(whole))
    throw new InvalidRequest(
      error === null ? this.name : fieldName(this.name, error.path),
      error === null ? 'Invalid' : explain(error),
    )
  }
}

export class Validator {
  readonly #params: Checker | null
  readonly #query: Checker | null
  readonly #body: Checker | null
  readonly #route: Route

  constructor(route: Route) {
    this.#route = route
    this.#params = route.params === undefined ? null : new Checker(route.params, 'params')
    this.#query = route.query === undefined ? null : new Checker(route.query, 'query')
    this.#body = route.body === undefined ? null : new Checker(route.body, 'body')
  }

  params(texts: Readonly<Record<string, string>>): unknown {
    if (this.#params === null) return texts
    return this.#params.check(coerced(Object.entries(texts), this.#route.params))
  }

  query(texts: ReadonlyMap<string, string>): unknown {
    const schema = this.#route.query
    if (this.#query === null) {
      for (const key of texts.keys()) if (key !== 'token') throw unknownKey(`query.${key}`)
      return EMPTY
    }
    const pairs = [...texts].filter(([key]) => key !== 'token' || (schema !== undefined && 'token' in schema.properties))
    return this.#query.check(coerced(pairs, schema))
  }

  /** `undefined` is an absent body. */
  body(value: unknown): unknown {
    if (this.#body === null) {
      // Clients like to send an empty object with a POST that needs nothing.
      if (value === undefined || isEmptyObject(value)) return EMPTY
      throw new InvalidRequest('body', 'This operation takes no body')
    }
    if (value === undefined && this.#route.bodyOptional !== true) throw new InvalidRequest('body', 'A JSON body is required')
    return this.#body.check(value ?? (value === undefined ? {} : value))
  }
}

function coerced(pairs: Iterable<readonly [string, string]>, schema: TObject | undefined): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const [key, text] of pairs) {
    // Assigning would set the prototype instead of adding the key.
    if (key === '__proto__') throw unknownKey('query.__proto__')
    values[key] = coerce(schema !== undefined && Object.hasOwn(schema.properties, key) ? schema.properties[key] : undefined, text)
  }
  return values
}

function unknownKey(field: string): InvalidRequest {
  return new InvalidRequest(field, `${field} is not known`)
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
}

/** Of a union, the complaint of the variant that came nearest. */
function clearest(errors: Iterable<ValueError>): ValueError | null {
  const [first] = errors
  if (first === undefined) return null
  if (first.type !== ValueErrorType.Union || literals(first.schema) !== null) return first
  let best: ValueError | null = null
  let least = Number.POSITIVE_INFINITY
  for (const variant of first.errors) {
    const all = [...variant]
    const [nearest] = all
    if (nearest !== undefined && nearest.path !== first.path && all.length < least) {
      best = clearest(all)
      least = all.length
    }
  }
  return best ?? first
}

function explain(error: ValueError): string {
  const choices = literals(error.schema)
  if (choices !== null) return `Expected one of ${choices.join(', ')}`
  switch (error.type) {
    case ValueErrorType.ObjectAdditionalProperties:
      return 'This key is not known'
    case ValueErrorType.ObjectRequiredProperty:
      return 'This value is required'
    case ValueErrorType.StringPattern:
      return typeof error.schema.description === 'string' ? `Expected ${error.schema.description}` : error.message
    default:
      return error.message
  }
}

/** The allowed texts of an enumeration. */
function literals(schema: TSchema): string[] | null {
  const variants: unknown[] = Array.isArray(schema.anyOf) ? schema.anyOf : [schema]
  const constants = variants.map((variant) => (variant as TSchema).const as unknown)
  if (schema[Kind] !== 'Union' && schema[Kind] !== 'Literal') return null
  return constants.some((constant) => constant === undefined) ? null : constants.map(String)
}

function fieldName(root: string, pointer: string): string {
  return root + pointer.replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
}
