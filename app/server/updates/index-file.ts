/**
 * The index of releases that a site offers:
 * `{"updates": [{"id", "version", "compatible", "url", "sha256", "size_bytes", "notes"?, "released"?}]}`.
 * `url` may be relative to the index. Entries that are malformed are left out, so that a later form of them keeps no device from its updates.
 */
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { ApiError } from '../errors.ts'
import { httpUrl } from './address.ts'
import { objectOf, parseJson } from './bundle.ts'
import { readText } from './net.ts'

export const INDEX_ID = '^[A-Za-z0-9._-]{1,64}$'
export const MAX_BUNDLE_BYTES = 1024 ** 3
const MAX_INDEX_BYTES = 256 * 1024
const MAX_ENTRIES = 100
const PATIENCE_MS = 10_000

const Entry = Type.Object({
  id: Type.String({ pattern: INDEX_ID }),
  version: Type.String({ minLength: 1, maxLength: 64 }),
  compatible: Type.String({ minLength: 1, maxLength: 128 }),
  url: Type.String({ minLength: 1, maxLength: 2048 }),
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  size_bytes: Type.Integer({ minimum: 1, maximum: MAX_BUNDLE_BYTES }),
  notes: Type.Optional(Type.String({ maxLength: 4096 })),
  released: Type.Optional(Type.String({ maxLength: 64 })),
})
/** `url` is absolute. */
export type IndexEntry = Readonly<Static<typeof Entry>>

export interface ReleaseIndex {
  readonly entries: readonly IndexEntry[]
  /** How many were left out. */
  readonly ignored: number
}

export function parseIndex(text: string, base: string): ReleaseIndex {
  const listed = objectOf(parseJson(text))?.updates
  if (!Array.isArray(listed)) throw new ApiError('SERVICE_UNAVAILABLE', 'The index is no JSON with a list `updates`', base)
  const entries = new Map<string, IndexEntry>()
  for (const value of listed.slice(0, MAX_ENTRIES) as unknown[]) {
    const url = Value.Check(Entry, value) ? httpUrl(value.url, base) : null
    if (url !== null && !entries.has((value as IndexEntry).id)) {
      const { id, version, compatible, sha256, size_bytes, notes, released } = value as IndexEntry
      const told = { ...(notes === undefined ? {} : { notes }), ...(released === undefined ? {} : { released }) }
      entries.set(id, { id, version, compatible, url, sha256, size_bytes, ...told })
    }
  }
  return { entries: [...entries.values()], ignored: listed.length - entries.size }
}

/** Throws SERVICE_UNAVAILABLE where it cannot be had. */
export async function fetchIndex(url: string, signal?: AbortSignal): Promise<ReleaseIndex> {
  const { text, from } = await readText(url, {
    maxBytes: MAX_INDEX_BYTES,
    patienceMs: PATIENCE_MS,
    ...(signal ? { signal } : {}),
  })
  return parseIndex(text, from)
}
