/** What clients are told of the updates that there are. Pure. */
import type { IndexEntry } from './index-file.ts'
import { type Candidate, isNewer, NOT_YET_LOOKED_AT, type Rules, refusal } from './judge.ts'
import type { Bundle } from './shelf.ts'

/** What a client is told of one update. */
export interface Offer {
  readonly id: string
  readonly source: 'index' | Bundle['source']
  readonly version: string | null
  readonly compatible: string | null
  readonly size_bytes: number
  readonly build: string | null
  readonly released: string | null
  readonly notes: string | null
  /** Whether its signature is one that this device trusts; null: nobody has looked yet. */
  readonly valid: boolean | null
  readonly installable: boolean
  readonly newer: boolean
  /** What speaks against it. */
  readonly reason: string | null
}

export function offeredByIndex({ id, version, compatible, size_bytes, notes, released }: IndexEntry, rules: Rules): Offer {
  const candidate = { version, compatible, ...NOT_YET_LOOKED_AT }
  const told = { size_bytes, build: null, released: released ?? null, notes: notes ?? null, valid: null }
  return { id, source: 'index', version, compatible, ...told, ...verdict(candidate, rules) }
}

export function offeredHere(
  { id, source, version, compatible, size_bytes, build, description, valid, problem }: Bundle,
  rules: Rules,
): Offer {
  const told = { size_bytes, build, released: null, notes: description, valid }
  return { id, source, version, compatible, ...told, ...verdict({ version, compatible, valid, problem }, rules) }
}

function verdict(candidate: Candidate, rules: Rules) {
  const reason = refusal(candidate, rules)?.message ?? null
  return { installable: reason === null, newer: isNewer(candidate, rules), reason }
}
