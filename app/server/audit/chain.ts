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

/** Takes the entries one by one, oldest first. */
export class ChainCheck {
  /** The number of the first entry that was changed or is missing before its successor; null while all hold. */
  brokenAt: number | null = null
  private before: AuditEntry | undefined

  add(entry: AuditEntry): void {
    const { hash, ...rest } = entry
    const { before } = this
    const linked = before === undefined || (entry.seq === before.seq + 1 && entry.previous === before.hash)
    if (!linked || hash !== hashOf(rest)) this.brokenAt ??= entry.seq
    this.before = entry
  }
}

function hashOf({ seq, timestamp, username, address, action, data, previous }: Omit<AuditEntry, 'hash'>): string {
  const text = JSON.stringify([seq, timestamp, username, address, action, data, previous])
  return createHash('sha256').update(text).digest('hex')
}
