/** TypeBox schemas in the dialect of OpenAPI 3.0, which knows no `const`, no `null` type and no `patternProperties`. */
import type { TSchema } from '@sinclair/typebox'
import { isObject } from './schema.ts'

export type Json = Record<string, unknown>

/** Keywords that both dialects share. */
const SHARED = [
  'title',
  'description',
  'type',
  'format',
  'default',
  'enum',
  'minimum',
  'maximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'readOnly',
  'writeOnly',
  'deprecated',
  'example',
] as const

/** In an `input` a value with a default may be left out; in an answer it is always there. */
export function toOpenApi(schema: TSchema, use: 'input' | 'output' = 'output'): Json {
  const convert = (inner: unknown) => toOpenApi(inner as TSchema, use)
  const out: Json = {}
  for (const keyword of SHARED) if (schema[keyword] !== undefined) out[keyword] = schema[keyword]

  if (schema.type === 'null') return { ...out, type: 'string', enum: [null], nullable: true }
  if (schema.const !== undefined) return { ...out, type: typeOf(schema.const), enum: [schema.const] }
  // A recursive schema refers to itself by a name of its own: what stands there is said by the level above.
  if (typeof schema.$ref === 'string') return { ...out, type: 'object' }
  if (Array.isArray(schema.examples)) out.example = schema.examples[0]
  for (const [name, bound] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (typeof schema[name] === 'number') Object.assign(out, { [bound]: schema[name], [name]: true })
  }
  if (Array.isArray(schema.anyOf)) return { ...out, ...union(schema.anyOf, convert) }
  if (Array.isArray(schema.allOf)) out.allOf = schema.allOf.map(convert)
  if (isObject(schema.not)) out.not = convert(schema.not)
  if (Array.isArray(schema.items)) out.items = { anyOf: schema.items.map(convert) }
  else if (schema.type === 'array') out.items = isObject(schema.items) ? convert(schema.items) : {}
  if (isObject(schema.properties)) Object.assign(out, properties(schema, use))
  if (isObject(schema.patternProperties)) out.additionalProperties = convert(Object.values(schema.patternProperties)[0])
  else if (isObject(schema.additionalProperties)) out.additionalProperties = convert(schema.additionalProperties)
  else if (schema.additionalProperties === false) out.additionalProperties = false
  return out
}

function properties(schema: TSchema, use: 'input' | 'output'): Json {
  const entries = Object.entries(schema.properties as Record<string, TSchema>)
  const required = ((schema.required ?? []) as string[]).filter(
    (name) => use === 'output' || (schema.properties as Record<string, TSchema>)[name]?.default === undefined,
  )
  return {
    properties: Object.fromEntries(entries.map(([name, property]) => [name, toOpenApi(property, use)])),
    ...(required.length > 0 && { required }),
  }
}

/** Of literals an enumeration; with null a nullable; else `anyOf`. */
function union(variants: readonly TSchema[], convert: (schema: unknown) => Json): Json {
  const rest = variants.filter((variant) => variant.type !== 'null')
  const nullable = rest.length < variants.length ? { nullable: true } : {}
  const constants = rest.map((variant) => variant.const as unknown)
  const types = new Set(constants.map(typeOf))
  if (rest.length > 0 && types.size === 1 && !constants.includes(undefined)) {
    const values = rest.length < variants.length ? [...constants, null] : constants
    return { type: typeOf(constants[0]), enum: values, ...nullable }
  }
  if (rest.length === 1) return { ...convert(rest[0]), ...nullable }
  return { anyOf: rest.map(convert), ...nullable }
}

function typeOf(constant: unknown): string {
  return typeof constant === 'number' && Number.isInteger(constant) ? 'integer' : typeof constant
}
