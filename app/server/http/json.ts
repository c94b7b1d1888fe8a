/** JSON from a client: bounded in depth, and without the key that turns into a prototype when an object is copied. */
import { InvalidRequest } from '../errors.ts'

export function parseJson(bytes: Uint8Array, maxDepth: number): unknown {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new InvalidRequest('body', 'The body is not valid UTF-8')
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new InvalidRequest('body', 'The body is not valid JSON')
  }
  check(value, 'body', maxDepth)
  return value
}

function check(value: unknown, field: string, depth: number): void {
  if (typeof value !== 'object' || value === null) return
  if (depth === 0) throw new InvalidRequest('body', 'The body is nested too deeply')
  for (const key of Object.keys(value)) {
    if (key === '__proto__') throw new InvalidRequest(`${field}.__proto__`, 'This key is not known')
    check((value as Record<string, unknown>)[key], `${field}.${key}`, depth - 1)
  }
}

/** True for `application/json` with any parameters, and for no type at all. */
export function isJsonType(contentType: string): boolean {
  const [type = ''] = contentType.split(';')
  return contentType === '' || type.trim().toLowerCase() === 'application/json'
}
