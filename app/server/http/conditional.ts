/** Whether a client's copy is still good (RFC 9110, 13). */
import { parseHttpDate } from './dates.ts'
import type { Conditions } from './exchange.ts'

export interface Validators {
  /** With its quotes. */
  readonly etag: string
  /** Epoch ms; the header knows whole seconds. */
  readonly modifiedMs?: number
}

export function isNotModified(conditions: Conditions, { etag, modifiedMs }: Validators): boolean {
  const { ifNoneMatch, ifModifiedSince } = conditions
  if (ifNoneMatch !== '') {
    return ifNoneMatch.trim() === '*' || ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
  }
  if (ifModifiedSince === '' || modifiedMs === undefined) return false
  const since = parseHttpDate(ifModifiedSince.trim())
  return since !== null && Math.floor(modifiedMs / 1000) * 1000 <= since
}

/** False: the copy that the range would complete is an old one, so the whole file must go out. */
export function isRangeCurrent(ifRange: string, { etag, modifiedMs }: Validators): boolean {
  const given = ifRange.trim()
  if (given === '') return true
  if (given.startsWith('"') || given.startsWith('W/')) return given === etag
  return modifiedMs !== undefined && parseHttpDate(given) === Math.floor(modifiedMs / 1000) * 1000
}
