/** Rewrites of TypeBox schemas. */
import { Kind, type TSchema } from '@sinclair/typebox'

/** The schema with every object closed that does not say otherwise: an unknown key is a mistake of the client. */
export function close(schema: TSchema): TSchema {
  const copy: TSchema = { ...schema }
  if (schema[Kind] === 'Intersect') {
    // Closed members would refuse each other's keys.
    if (copy.unevaluatedProperties === undefined) copy.unevaluatedProperties = false
    return copy
  }
  if (isObject(schema.properties)) {
    copy.properties = Object.fromEntries(Object.entries(schema.properties).map(([key, value]) => [key, close(value as TSchema)]))
    if (copy.additionalProperties === undefined) copy.additionalProperties = false
  }
  if (Array.isArray(schema.anyOf)) copy.anyOf = schema.anyOf.map((variant: TSchema) => close(variant))
  if (Array.isArray(schema.items)) copy.items = schema.items.map((item: TSchema) => close(item))
  else if (isObject(schema.items)) copy.items = close(schema.items as TSchema)
  if (isObject(schema.patternProperties)) {
    copy.patternProperties = Object.fromEntries(
      Object.entries(schema.patternProperties).map(([key, value]) => [key, close(value as TSchema)]),
    )
  }
  return copy
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
