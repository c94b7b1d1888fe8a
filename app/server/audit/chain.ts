/** The hash chain of the audit log: each entry's hash covers the entry and the hash before it, so that a change anywhere shows. Pure. */
import { createHash } from 'node:crypto'

export interface AuditEntry {
  /** 1, 2, 3 … without a gap. */
  readonly seq: number
  /** ISO 8601. */
  readonly timestamp: string
  /** Null: the device itself. */
  readonly username: string | null
  readonly address: string | null
  /** `auth.login`, `recording.deleted`, … */
  readonly action: string
  readonly data: Readonly<Record<string, unknown>>
  /** SHA-256, hex, of this entry without `hash`; `previous` is the hash of the entry before, zeros for the first. */
  readonly previous: string
  readonly hash: string
}

export const FIRST_PREVIOUS = '0'.repeat(64)

export function chained(entry: Omit<AuditEntry, 'hash'>): AuditEntry {
  return { ...entry, hash: hashOf(entry) }
}

/** The number of the first entry that was changed or is missing before its successor; null when all hold. */
export function firstBroken(entries: Iterable<AuditEntry>): number | null {
  let before: AuditEntry | undefined
  for (const entry of entries) {
    const { hash, ...rest } = entry
    const linked = before === undefined || (entry.seq === before.seq + 1 && entry.previous === before.hash)
    if (!linked || hash !== hashOf(rest)) return entry.seq
    before = entry
  }
  return null
}

function hashOf({ seq, timestamp, username, address, action, data, previous }: Omit<AuditEntry, 'hash'>): string {
  const text = JSON.stringify([seq, timestamp, username, address, action, data, previous])
  return createHash('sha256').update(text).digest('hex')
}
