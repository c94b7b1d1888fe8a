/**
 * Failed logins, counted per account and per address over all protocols, and the locks that follow from them. An account that does not exist
 * is counted and locked like one that does. Kept in the database, so that a restart unlocks nobody.
 */
import ipaddr from 'ipaddr.js'
import { ApiError } from '../errors.ts'
import type { Store, Table } from '../store/index.ts'

export const MAX_FAILURES = 5
export const WINDOW_MS = 5 * 60_000
export const LOCK_MS = 5 * 60_000
/** Accounts and addresses remembered; the longest unharmed is forgotten first. */
const MAX_ENTRIES = 4096
const MAX_NAME = 64

export interface LockoutEntry {
  /** Epoch ms, of the failures that still count. */
  readonly failures: readonly number[]
  /** Epoch ms; 0: not locked. */
  readonly locked_until: number
}

/** What a failure has locked. */
export interface Locked {
  readonly account: boolean
  readonly address: boolean
}

type Kind = 'account' | 'address'

/** The IPv4 address, or the /64 of an IPv6 one: a household gets that many addresses for the asking. */
export function addressKey(address: string): string {
  if (!ipaddr.isValid(address)) return address.slice(0, MAX_NAME)
  const parsed = ipaddr.process(address)
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString()
  const groups = parsed.parts.slice(0, 4)
  return `${new ipaddr.IPv6([...groups, 0, 0, 0, 0]).toString()}/64`
}

export class Lockout {
  private readonly table: Table<string, LockoutEntry>
  /** The table's twin, in the order of the last failure. */
  private readonly entries = new Map<string, LockoutEntry>()

  constructor(
    private readonly store: Store,
    private readonly now: () => number,
    private readonly maxEntries = MAX_ENTRIES,
  ) {
    this.table = store.table('lockout')
    const kept = [...this.table.range()].sort((a, b) => lastHarm(a.value) - lastHarm(b.value))
    for (const { key, value } of kept) {
      if (this.counts(value)) this.entries.set(key, value)
      else this.table.remove(key)
    }
  }

  /** Throws while either is locked. The answer is the same for both, and for accounts that do not exist. */
  check(username: string, address: string): void {
    const wait = Math.max(this.remaining('account', username), this.remaining('address', addressKey(address)))
    if (wait <= 0) return
    throw new ApiError('ACCOUNT_LOCKED', 'Too many failed logins; try again later', '', {
      'Retry-After': String(Math.ceil(wait / 1000)),
    })
  }

  /** Counts one failure. What is locked already stays so for no longer. */
  fail(username: string | null, address: string): Locked {
    const account = username !== null && username.length <= MAX_NAME ? this.count('account', username) : false
    return { account, address: this.count('address', addressKey(address)) }
  }

  /** A right login: the account starts anew, the address does not. */
  succeed(username: string): void {
    this.forget(keyOf('account', username))
  }

  isLocked(username: string): boolean {
    return this.remaining('account', username) > 0
  }

  /** Names and address keys that are locked now, and when the first of them is free again. */
  locked(): { users: string[]; addresses: string[]; until: number | null } {
    const users: string[] = []
    const addresses: string[] = []
    let until: number | null = null
    for (const [key, entry] of this.entries) {
      if (this.left(entry) <= 0) continue
      const name = key.slice(key.indexOf(':') + 1)
      if (key.startsWith('account:')) users.push(name)
      else addresses.push(name)
      until = Math.min(until ?? entry.locked_until, entry.locked_until)
    }
    return { users, addresses, until }
  }

  private remaining(kind: Kind, name: string): number {
    const entry = this.entries.get(keyOf(kind, name))
    return entry === undefined ? 0 : this.left(entry)
  }

  /** A clock that was set back must not lock for years. */
  private left(entry: LockoutEntry): number {
    const left = entry.locked_until - this.now()
    return left > 2 * LOCK_MS ? 0 : left
  }

  /** Returns whether this failure was the last straw. */
  private count(kind: Kind, name: string): boolean {
    const key = keyOf(kind, name)
    const entry = this.entries.get(key)
    if (entry !== undefined && this.left(entry) > 0) return false
    const now = this.now()
    const recent =
      entry === undefined || entry.locked_until !== 0 ? [] : entry.failures.filter((at) => Math.abs(now - at) < WINDOW_MS)
    const failures = [...recent, now]
    const locked = failures.length >= MAX_FAILURES
    this.entries.delete(key)
    const next: LockoutEntry = locked ? { failures: [], locked_until: now + LOCK_MS } : { failures, locked_until: 0 }
    try {
      this.makeRoom()
      this.table.put(key, next)
    } catch (error) {
      // On a full disk it counts until the server ends.
      if (!(error instanceof ApiError)) throw error
    }
    this.entries.set(key, next)
    return locked
  }

  private makeRoom(): void {
    if (this.entries.size < this.maxEntries) return
    // In one commit: each of its own would stop everything for seconds.
    this.store.transaction(() => {
      for (const [key, entry] of this.entries) if (!this.counts(entry)) this.forget(key)
    })
    if (this.entries.size < this.maxEntries) return
    for (const [key, entry] of this.entries) {
      if (this.left(entry) > 0) continue
      this.forget(key)
      return
    }
    const [first] = this.entries.keys()
    if (first !== undefined) this.forget(first)
  }

  private counts(entry: LockoutEntry): boolean {
    const last = entry.failures.at(-1)
    return this.left(entry) > 0 || (last !== undefined && Math.abs(this.now() - last) < WINDOW_MS)
  }

  private forget(key: string): void {
    if (this.entries.delete(key)) this.table.remove(key)
  }
}

function keyOf(kind: Kind, name: string): string {
  return `${kind}:${name}`
}

function lastHarm(entry: LockoutEntry): number {
  return Math.max(entry.locked_until - LOCK_MS, entry.failures.at(-1) ?? 0)
}
