/** A text of the query or path as the type that its schema wants. What does not fit stays a text, and validation names it. */
import { Kind, type TSchema } from '@sinclair/typebox'

const INTEGER = /^-?(0|[1-9]\d{0,15})$/
const NUMBER = /^-?(0|[1-9]\d{0,15})(\.\d{1,17})?([eE][+-]?\d{1,3})?$/
const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, false: false, '1': true, '0': false }

export function coerce(schema: TSchema | undefined, text: string): unknown {
  switch (schema?.[Kind]) {
    case 'Integer':
      return asInteger(text)
    case 'Number':
      return asNumber(text)
    case 'Boolean':
      return Object.hasOwn(BOOLEANS, text) ? BOOLEANS[text] : text
    case 'Literal':
      return String(schema.const) === text ? schema.const : text
    case 'Union':
      return asUnion(schema.anyOf as TSchema[], text)
    default:
      return text
  }
}

function asInteger(text: string): unknown {
  const value = Number(text)
  return INTEGER.test(text) && Number.isSafeInteger(value) ? value + 0 : text // + 0 turns -0 into 0
}

function asNumber(text: string): unknown {
  const value = Number(text)
  return NUMBER.test(text) && Number.isFinite(value) ? value + 0 : text
}

/** The first variant that makes something else of the text; a text variant takes what is left. */
function asUnion(variants: readonly TSchema[], text: string): unknown {
  for (const variant of variants) {
    const value = coerce(variant, text)
    if (value !== text) return value
  }
  return text
}
