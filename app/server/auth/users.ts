/** The accounts as they are stored. The rules of who may change what are in `accounts.ts`. */

import type { Role } from '../caller.ts'
import { ApiError } from '../errors.ts'
import type { Store, Table } from '../store/index.ts'
import { type Ha1Algorithm, ha1 } from './ha1.ts'
import { open, seal } from './sealed.ts'

/** A new password may not be the present one or one of these many before it. */
export const PASSWORD_HISTORY = 5

export const PROTOCOLS = ['rtsp', 'onvif'] as const
export type Protocol = (typeof PROTOCOLS)[number]

/** Secrets of RTSP and HTTP Digest, sealed. An account from before SHA-256 gets that one with its next login. */
export interface SealedHa1 {
  readonly md5: string
  readonly sha256: string | null
}

export interface TwoFactorRecord {
  readonly sealed_secret: string
  /** False until a first code has shown that the authenticator works. */
  readonly enabled: boolean
  /** The time step of the last code that was accepted: each is good once. */
  readonly last_step: number
  /** Hashes of the recovery codes that are left. */
  readonly recovery: readonly string[]
}

export interface UserRecord {
  readonly username: string
  readonly role: Role
  readonly email: string
  readonly enabled: boolean
  readonly password_hash: string
  /** bcrypt hashes of the passwords before, newest first. */
  readonly previous_hashes: readonly string[]
  readonly must_change_password: boolean
  readonly protocols: readonly Protocol[]
  /** Null: all cameras. */
  readonly cameras: readonly number[] | null
  /** Only with a protocol granted, and never for the factory password. */
  readonly sealed_ha1: SealedHa1 | null
  readonly two_factor: TwoFactorRecord | null
  readonly created_at: string
  readonly updated_at: string
}

export type UserFields = Pick<UserRecord, 'username' | 'role' | 'email' | 'enabled' | 'protocols' | 'cameras'>

export interface NewPassword {
  readonly password: string
  readonly hash: string
  readonly mustChange: boolean
}

/** What the helper needs to let somebody in over RTSP. */
export interface RtspUser {
  readonly name: string
  readonly ha1_md5: string
  readonly ha1_sha256: string | null
  readonly cameras: readonly number[] | null
}

export class Users {
  private readonly table: Table<string, UserRecord>
  /** The whole table: every request looks its caller up. */
  private readonly records = new Map<string, UserRecord>()

  constructor(
    store: Store,
    private readonly sealKey: Buffer,
    /** Called after each change. */
    private readonly changed: () => void = () => {},
  ) {
    this.table = store.table('users')
    this.load()
  }

  get(username: string): UserRecord | undefined {
    return this.records.get(username)
  }

  get size(): number {
    return this.records.size
  }

  /** By name. */
  all(): UserRecord[] {
    return [...this.records.values()].sort((a, b) => (a.username < b.username ? -1 : 1))
  }

  create(fields: UserFields, { password, hash, mustChange }: NewPassword): UserRecord {
    const now = new Date().toISOString()
    const record: UserRecord = {
      ...fields,
      password_hash: hash,
      previous_hashes: [],
      must_change_password: mustChange,
      sealed_ha1: null,
      two_factor: null,
      created_at: now,
      updated_at: now,
    }
    return this.put(this.withSecrets(record, password))
  }

  /** Takes the sealed secrets away with the last grant. */
  update(user: UserRecord, change: Partial<Omit<UserRecord, 'username' | 'created_at'>>): UserRecord {
    const next = { ...user, ...change, updated_at: new Date().toISOString() }
    const closed = next.protocols.length === 0 || next.must_change_password
    return this.put(closed ? { ...next, sealed_ha1: null } : next)
  }

  setPassword(user: UserRecord, { password, hash, mustChange }: NewPassword): UserRecord {
    const record: UserRecord = {
      ...user,
      password_hash: hash,
      previous_hashes: [user.password_hash, ...user.previous_hashes].slice(0, PASSWORD_HISTORY),
      must_change_password: mustChange,
      sealed_ha1: null,
      updated_at: new Date().toISOString(),
    }
    return this.put(this.withSecrets(record, password))
  }

  remove(username: string): void {
    this.table.remove(username)
    this.records.delete(username)
    this.changed()
  }

  /**
   * A password that was just verified: seals what a grant needs and what could not be made when the grant was given. Returns whether
   * anything was missing.
   */
  completeSecrets(user: UserRecord, password: string): boolean {
    const complete = user.sealed_ha1 !== null && user.sealed_ha1.sha256 !== null
    if (complete || user.must_change_password || user.protocols.length === 0) return false
    try {
      this.put(this.withSecrets(user, password))
    } catch (error) {
      // A full disk lets him in all the same: the next login tries again.
      if (!(error instanceof ApiError)) throw error
      return false
    }
    return true
  }

  /** The secret of Digest; null where the account is not granted one. */
  ha1(user: UserRecord, algorithm: Ha1Algorithm): string | null {
    const sealed = user.sealed_ha1?.[algorithm === 'MD5' ? 'md5' : 'sha256'] ?? null
    return sealed === null ? null : open(this.sealKey, sealed, user.username)
  }

  /** Guests see no streams. */
  rtspUsers(): RtspUser[] {
    return this.all().flatMap((user) => {
      if (!user.enabled || user.role === 'guest' || !user.protocols.includes('rtsp')) return []
      const md5 = this.ha1(user, 'MD5')
      if (md5 === null) return []
      return [{ name: user.username, ha1_md5: md5, ha1_sha256: this.ha1(user, 'SHA-256'), cameras: user.cameras }]
    })
  }

  /** Into the table alone: `reload` follows when the transaction around it is stored. */
  stage(records: readonly UserRecord[]): void {
    for (const record of records) this.table.put(record.username, record)
  }

  reload(): void {
    this.load()
    this.changed()
  }

  private load(): void {
    this.records.clear()
    for (const { value } of this.table.range()) this.records.set(value.username, value)
  }

  private put(record: UserRecord): UserRecord {
    this.table.put(record.username, record)
    this.records.set(record.username, record)
    this.changed()
    return record
  }

  private withSecrets(user: UserRecord, password: string): UserRecord {
    if (user.must_change_password || user.protocols.length === 0) return { ...user, sealed_ha1: null }
    const sealed = (algorithm: Ha1Algorithm) => seal(this.sealKey, ha1(algorithm, user.username, password), user.username)
    return { ...user, sealed_ha1: { md5: sealed('MD5'), sha256: sealed('SHA-256') } }
  }
}
