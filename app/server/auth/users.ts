/** The accounts: who may come in, with which role and over which protocols. */
import { createHash } from 'node:crypto'
import type { Role } from '../caller.ts'
import type { Store, Table } from '../store/index.ts'
import { seal, unseal } from './sealed.ts'

export const RTSP_REALM = 'camera'
const PASSWORD_HISTORY = 5

export type Protocol = 'rtsp' | 'onvif'

export interface UserRecord {
  readonly username: string
  readonly role: Role
  readonly email: string
  readonly password_hash: string
  /** bcrypt hashes of the passwords before, newest first. */
  readonly previous_hashes: readonly string[]
  readonly must_change_password: boolean
  readonly protocols: readonly Protocol[]
  /** RTSP's HA1, sealed; only with the `rtsp` grant and never for the factory password. */
  readonly sealed_ha1: string | null
  readonly created_at: string
  readonly updated_at: string
}

export interface NewPassword {
  readonly password: string
  readonly hash: string
  readonly mustChange: boolean
}

export class Users {
  private readonly table: Table<string, UserRecord>

  constructor(
    store: Store,
    private readonly sealKey: Buffer,
  ) {
    this.table = store.table('users')
  }

  get(username: string): UserRecord | undefined {
    return username.length > 0 && username.length <= 64 ? this.table.get(username) : undefined
  }

  get empty(): boolean {
    return this.table.count({ limit: 1 }) === 0
  }

  create(user: Pick<UserRecord, 'username' | 'role' | 'email' | 'protocols'>, password: NewPassword): UserRecord {
    const now = new Date().toISOString()
    const record: UserRecord = {
      ...user,
      password_hash: password.hash,
      previous_hashes: [],
      must_change_password: password.mustChange,
      sealed_ha1: this.sealHa1(user, password),
      created_at: now,
      updated_at: now,
    }
    this.table.put(user.username, record)
    return record
  }

  setPassword(user: UserRecord, password: NewPassword): UserRecord {
    const record: UserRecord = {
      ...user,
      password_hash: password.hash,
      previous_hashes: [user.password_hash, ...user.previous_hashes].slice(0, PASSWORD_HISTORY),
      must_change_password: password.mustChange,
      sealed_ha1: this.sealHa1(user, password),
      updated_at: new Date().toISOString(),
    }
    this.table.put(user.username, record)
    return record
  }

  /** Those who may come in over RTSP, with the HA1 that Digest needs (RFC 7616 section 3.4.2, MD5). */
  rtspUsers(): { name: string; ha1: string }[] {
    const users: { name: string; ha1: string }[] = []
    for (const { value } of this.table.range()) {
      if (value.sealed_ha1) users.push({ name: value.username, ha1: unseal(this.sealKey, value.sealed_ha1, value.username) })
    }
    return users
  }

  private sealHa1(user: Pick<UserRecord, 'username' | 'protocols'>, { password, mustChange }: NewPassword): string | null {
    if (mustChange || !user.protocols.includes('rtsp')) return null
    const ha1 = createHash('md5').update(`${user.username}:${RTSP_REALM}:${password}`).digest('hex')
    return seal(this.sealKey, ha1, user.username)
  }
}
