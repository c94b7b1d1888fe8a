/** Changes of accounts: the rules they obey, and that what an account has opened ends with the right to it. */
import type { Bus } from '../bus.ts'
import type { Role } from '../caller.ts'
import { Conflict, InvalidRequest, NotFound } from '../errors.ts'
import type { Lockout } from './lockout.ts'
import type { PasswordGate } from './password-gate.ts'
import { checkPasswordRules, type PasswordHasher } from './passwords.ts'
import type { Sessions } from './sessions.ts'
import type { Protocol, UserFields, UserRecord, Users } from './users.ts'

export const MAX_USERS = 1000
export const USERNAME = /^[A-Za-z0-9._-]{1,64}$/
/** RTSP names of share links. */
export const SHARE_PREFIX = 'share-'

/** On whose behalf a change is made. */
export interface Requester {
  readonly username: string
  readonly address: string
  readonly sessionId?: string | undefined
}

export interface NewUser {
  readonly username: string
  readonly password: string
  readonly role: Role
  readonly email?: string
  readonly protocols?: readonly Protocol[]
  readonly cameras?: readonly number[] | null
  readonly must_change_password?: boolean
}

export interface UserChange {
  readonly role?: Role
  readonly email?: string
  readonly enabled?: boolean
  readonly protocols?: readonly Protocol[]
  readonly cameras?: readonly number[] | null
  readonly password?: string
  readonly must_change_password?: boolean
  /** False: forget the failed logins. */
  readonly locked?: false
  /** False: take the second factor away. */
  readonly two_factor?: false
}

export interface AccountParts {
  readonly users: Users
  readonly sessions: Sessions
  readonly gate: PasswordGate
  readonly hasher: PasswordHasher
  readonly lockout: Lockout
  readonly bus: Bus
}

export class Accounts {
  constructor(private readonly parts: AccountParts) {}

  async create(by: Requester, user: NewUser): Promise<UserRecord> {
    const { users, hasher, bus } = this.parts
    const { username, password, role } = user
    if (!USERNAME.test(username)) throw new InvalidRequest('body.username', 'Expected letters, digits, dots, - and _, at most 64')
    if (username.startsWith(SHARE_PREFIX))
      throw new InvalidRequest('body.username', `${SHARE_PREFIX} is reserved for share links`)
    this.checkFree(username)
    checkPasswordRules(password, 'body.password')
    const hash = await hasher.hash(password)
    this.checkFree(username)
    const fields: UserFields = {
      username,
      role,
      email: user.email ?? '',
      enabled: true,
      protocols: user.protocols ?? ['rtsp'],
      cameras: user.cameras ?? null,
    }
    const record = users.create(fields, { password, hash, mustChange: user.must_change_password ?? false })
    bus.emit('users-changed')
    this.publish('user_created', by, username, { role })
    return record
  }

  async change(by: Requester, username: string, change: UserChange): Promise<UserRecord> {
    const { users, hasher, lockout, bus } = this.parts
    const before = this.existing(username)
    this.checkLastAdmin(before, change)
    if (change.password !== undefined) await this.checkNewPassword(before, change.password, 'body.password')
    const hash = change.password === undefined ? undefined : await hasher.hash(change.password)
    // bcrypt takes a while: the account may be another one by now.
    const current = this.existing(username)
    if (current.password_hash !== before.password_hash) throw new Conflict('The account was changed meanwhile', username)
    this.checkLastAdmin(current, change)

    const { password, locked, two_factor, ...fields } = change
    const removed = two_factor === false && current.two_factor !== null
    let user = users.update(current, { ...fields, ...(removed ? { two_factor: null } : {}) })
    if (password !== undefined && hash !== undefined) {
      user = users.setPassword(user, { password, hash, mustChange: change.must_change_password ?? user.must_change_password })
    }
    if (locked === false) {
      lockout.succeed(username)
      bus.emit('lockout-changed')
    }
    // The own session stays after a new password, but not with rights that it no longer has.
    const own = by.username === username && !rightsChanged(current, user) ? by.sessionId : undefined
    if (endsConnections(current, user)) this.endAll(username, own)
    bus.emit('users-changed')
    this.publish('user_changed', by, username, { changed: Object.keys(change) })
    if (password !== undefined) this.publish('password_changed', by, username)
    if (removed) this.publish('totp_disabled', by, username)
    return user
  }

  remove(by: Requester, username: string): void {
    const { users, lockout, bus } = this.parts
    const user = this.existing(username)
    this.checkLastAdmin(user, { enabled: false })
    users.remove(username)
    lockout.succeed(username)
    this.endAll(username)
    bus.emit('users-changed')
    this.publish('user_deleted', by, username)
  }

  /** The owner's own change; the session that it comes through goes on. */
  async changeOwnPassword(by: Requester, current: string, next: string): Promise<void> {
    const { users, gate, hasher, bus } = this.parts
    const user = await gate.check(by.username, current, by.address)
    await this.checkNewPassword(user, next, 'body.new_password')
    const hash = await hasher.hash(next)
    const now = this.existing(by.username)
    if (now.password_hash !== user.password_hash) throw new Conflict('The account was changed meanwhile', by.username)
    users.setPassword(now, { password: next, hash, mustChange: false })
    this.endAll(by.username, by.sessionId)
    bus.emit('users-changed')
    this.publish('password_changed', by, by.username)
  }

  existing(username: string): UserRecord {
    const user = this.parts.users.get(username)
    if (!user) throw new NotFound(`user ${username}`)
    return user
  }

  /** The record was replaced by that of a backup. */
  replaced(by: Requester, before: UserRecord | undefined, after: UserRecord): void {
    const { username } = after
    if (before && endsConnections(before, after)) {
      this.endAll(username, by.username === username && !rightsChanged(before, after) ? by.sessionId : undefined)
    }
    this.publish(before ? 'user_changed' : 'user_created', by, username, { restored: true })
  }

  /** Tells everybody who holds a connection of this account to close it. */
  private endAll(username: string, keep?: string): void {
    const { sessions, gate, bus } = this.parts
    gate.forget(username)
    for (const sessionId of sessions.endAll(username, keep)) bus.emit('session-ended', { sessionId })
    bus.emit('user-changed', keep === undefined ? { username } : { username, keep })
  }

  private checkFree(username: string): void {
    const { users } = this.parts
    if (users.size >= MAX_USERS) throw new Conflict(`There are ${MAX_USERS} accounts already`, `limit ${MAX_USERS}`)
    // Two names that differ in case alone are a trap for people.
    const taken = users.all().some((user) => user.username.toLowerCase() === username.toLowerCase())
    if (taken) throw new Conflict('This username is taken', 'body.username')
  }

  private checkLastAdmin(user: UserRecord, { role = user.role, enabled = user.enabled }: UserChange): void {
    if (user.role !== 'admin' || !user.enabled || (role === 'admin' && enabled)) return
    const others = this.parts.users.all().filter((one) => one.role === 'admin' && one.enabled && one.username !== user.username)
    if (others.length === 0) throw new Conflict('The last admin must stay one', user.username)
  }

  private async checkNewPassword(user: UserRecord, password: string, field: string): Promise<void> {
    checkPasswordRules(password, field)
    const used = [user.password_hash, ...user.previous_hashes]
    const matches = await Promise.all(used.map((hash) => this.parts.hasher.verify(password, hash)))
    if (matches.includes(true)) throw new InvalidRequest(field, 'The password was used before; the last 5 may not be used again')
  }

  private publish(type: string, by: Requester, target: string, more: Record<string, unknown> = {}): void {
    this.parts.bus.publish('auth', type, { username: by.username, address: by.address, target, ...more })
  }
}

/** Whether what the account has opened must close. */
function endsConnections(before: UserRecord, after: UserRecord): boolean {
  return before.password_hash !== after.password_hash || rightsChanged(before, after)
}

function rightsChanged(before: UserRecord, after: UserRecord): boolean {
  return (
    before.role !== after.role ||
    (before.enabled && !after.enabled) ||
    (!before.must_change_password && after.must_change_password) ||
    before.protocols.some((protocol) => !after.protocols.includes(protocol)) ||
    JSON.stringify(before.cameras) !== JSON.stringify(after.cameras)
  )
}
