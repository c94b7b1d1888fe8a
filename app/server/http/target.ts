/** The request target: strict about encodings and path tricks, so that nothing behind it has to be. */
import { InvalidRequest } from '../errors.ts'

/** One segment decoded, or an `InvalidRequest`. */
export function decodeSegment(raw: string): string {
  let text = raw
  if (raw.includes('%')) {
    try {
      text = decodeURIComponent(raw)
    } catch {
      throw new InvalidRequest('path', 'The path has a malformed percent-encoding')
    }
  }
  if (text.includes('\0')) throw new InvalidRequest('path', 'The path contains a NUL')
  if (text.includes('\\')) throw new InvalidRequest('path', 'The path contains a backslash')
  if (text === '.' || text === '..') throw new InvalidRequest('path', 'The path contains a dot segment')
  return text
}

/** Decoded segments of a path; a decoded segment may still hold a `/`, which only a wildcard accepts. */
export function splitPath(path: string): string[] {
  if (!path.startsWith('/')) throw new InvalidRequest('path', 'The path must start with /')
  if (path === '/') return []
  if (path.includes('//')) throw new InvalidRequest('path', 'The path has an empty segment')
  return path.slice(1).split('/').map(decodeSegment)
}

/** Pairs of a query string, decoded. A key that comes twice is refused: which one counts would be a guess. */
export function parseQuery(raw: string): Map<string, string> {
  const values = new Map<string, string>()
  if (raw === '') return values
  for (const pair of raw.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const key = decodeQuery(equals < 0 ? pair : pair.slice(0, equals))
    const value = equals < 0 ? '' : decodeQuery(pair.slice(equals + 1))
    if (values.has(key)) throw new InvalidRequest(`query.${key}`, `${key} was given more than once`)
    values.set(key, value)
  }
  return values
}

function decodeQuery(raw: string): string {
  try {
    const text = decodeURIComponent(raw.includes('+') ? raw.replaceAll('+', ' ') : raw)
    if (!text.includes('\0')) return text
  } catch {
    throw new InvalidRequest('query', 'The query has a malformed percent-encoding')
  }
  throw new InvalidRequest('query', 'The query contains a NUL')
}
