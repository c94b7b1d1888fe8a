/** Who may come in: login, tokens, Basic, cookies, and the change of passwords. */
import { createHmac, randomBytes } from 'node:crypto'
import type { Bus } from '../bus.ts'
import { type Caller, type CredentialSource, SESSION_COOKIE } from '../caller.ts'
import type { Component } from '../component.ts'
import { InvalidCredentials, InvalidRequest, PermissionDenied } from '../errors.ts'
import type { Logger } from '../log.ts'
import { loadOrCreateKey } from '../platform/index.ts'
import type { Store } from '../store/index.ts'
import { parseBasic, parseBearer, sameOrigin, sessionCookie } from './credentials.ts'
import { checkPasswordRules, PasswordHasher } from './passwords.ts'
import { type SessionRecord, Sessions } from './sessions.ts'
import { type UserRecord, Users } from './users.ts'

export const FACTORY_USERNAME = 'admin'
/** Documented in the README; good for nothing but the first login and its own change. */
export const FACTORY_PASSWORD = 'admin'

/** Compared with when the account does not exist, so that the answer takes the same time. */
const NOBODYS_HASH = '$2y$12$bYkiCvve/Q2.nyC480LrEetiaY1Ljy4btZtk.5lD1n.V83mpCmfH.'

const BASIC_CACHE_MS = 60_000
const BASIC_CACHE_SIZE = 1000
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

export interface AuthOptions {
  /** Folder of the key files. */
  readonly keyFolder: string
  /** The admin's password at first start; undefined: the factory password, to be changed. */
  readonly adminPassword: string | undefined
  readonly sessionLifetimeMs: number
}

export interface Login {
  readonly token: string
  readonly expiresAt: string
  readonly cookie: string
  readonly user: UserRecord
}

interface Opened {
  readonly users: Users
  readonly sessions: Sessions
}

export class Auth implements Component {
  private opened: Opened | undefined
  private readonly hasher = new PasswordHasher()
  private readonly basicKey = randomBytes(32)
  /** Basic credentials verified a short while ago, so that they cost no bcrypt round a request. */
  private readonly basic = new Map<string, { username: string; until: number }>()

  constructor(
    private readonly store: Store,
    private readonly bus: Bus,
    private readonly options: AuthOptions,
    private readonly log: Logger,
    private readonly now: () => number = Date.now,
  ) {}

  async start(): Promise<void> {
    const { keyFolder, adminPassword } = this.options
    const users = new Users(this.store, loadOrCreateKey(`${keyFolder}/seal.key`, 32))
    const sessions = new Sessions(this.store, loadOrCreateKey(`${keyFolder}/token.key`, 32), this.now)
    this.opened = { users, sessions }
    if (!users.empty) return
    const password = adminPassword ?? FACTORY_PASSWORD
    if (adminPassword !== undefined) checkPasswordRules(adminPassword, 'admin-password-file')
    users.create(
      { username: FACTORY_USERNAME, role: 'admin', email: '', protocols: ['rtsp'] },
      { password, hash: await this.hasher.hash(password), mustChange: adminPassword === undefined },
    )
    this.log.info({ username: FACTORY_USERNAME }, 'factory account created')
  }

  stop(): void {
    this.opened = undefined
    this.basic.clear()
  }

  get users(): Users {
    return this.parts.users
  }

  async login(username: string, password: string, address: string, secure: boolean): Promise<Login> {
    const user = await this.checkPassword(username, password)
    if (!user) {
      this.bus.publish('auth', 'login_failed', { username, address })
      throw new InvalidCredentials('The username or the password is wrong')
    }
    const { token, session } = await this.parts.sessions.create(user.username, address, this.options.sessionLifetimeMs)
    this.bus.publish('auth', 'login', { username: user.username, address })
    return { token, expiresAt: new Date(session.expires_at).toISOString(), cookie: this.cookie(token, secure), user }
  }

  logout(caller: Caller): void {
    if (!caller.sessionId) return
    this.parts.sessions.end(caller.sessionId)
    this.bus.emit('session-ended', { sessionId: caller.sessionId })
    this.bus.publish('auth', 'logout', { username: caller.username })
  }

  /** A cookie that takes the session's away. */
  expiredCookie(secure: boolean): string {
    return `${this.cookie('', secure)}; Max-Age=0`
  }

  /** Synchronous for tokens seen before: the hot path costs no promise. */
  authenticate(source: CredentialSource): Caller | null | Promise<Caller | null> {
    const { authorization, token } = source
    const bearer = authorization ? parseBearer(authorization) : null
    if (bearer) return this.byToken(bearer, 'bearer')
    if (authorization) return this.byBasic(authorization)
    if (token) return this.byToken(token, 'query')
    const cookie = source.cookie ? sessionCookie(source.cookie) : null
    if (!cookie) return null
    if (!SAFE_METHODS.has(source.method) && !sameOrigin(source.origin, source.host)) {
      throw new PermissionDenied('a session cookie is only accepted from the same origin')
    }
    return this.byToken(cookie, 'cookie')
  }

  /** The owner of a token. */
  async byBearer(token: string): Promise<Caller> {
    return this.byToken(token, 'bearer')
  }

  /** Changes a password; the caller's own session stays, all others of that user end. */
  async changePassword(caller: Caller, username: string, current: string, next: string): Promise<void> {
    const { users, sessions } = this.parts
    if (caller.username !== username) throw new PermissionDenied('only the owner may change this password here')
    const user = await this.checkPassword(username, current)
    if (!user) throw new InvalidCredentials('The current password is wrong')
    checkPasswordRules(next, 'body.new_password')
    for (const used of [user.password_hash, ...user.previous_hashes]) {
      if (await this.hasher.verify(next, used)) {
        throw new InvalidRequest('body.new_password', 'The password was used before; the last 5 may not be used again')
      }
    }
    const hash = await this.hasher.hash(next)
    users.setPassword(user, { password: next, hash, mustChange: false })
    for (const [key, entry] of this.basic) if (entry.username === username) this.basic.delete(key)
    for (const sessionId of sessions.endAll(username, caller.sessionId)) this.bus.emit('session-ended', { sessionId })
    this.bus.emit('users-changed')
    this.bus.publish('auth', 'password_changed', { username })
  }

  private get parts(): Opened {
    if (!this.opened) throw new Error('authentication is not started')
    return this.opened
  }

  private async checkPassword(username: string, password: string): Promise<UserRecord | null> {
    const user = this.parts.users.get(username)
    const good = await this.hasher.verify(password, user?.password_hash ?? NOBODYS_HASH)
    // Read again: the account may have changed while bcrypt ran.
    const now = user && this.parts.users.get(username)
    return good && now?.password_hash === user?.password_hash ? (now ?? null) : null
  }

  private byToken(token: string, via: Caller['via']): Caller | Promise<Caller> {
    const known = this.parts.sessions.cached(token)
    if (known) return this.callerOf(known, via)
    return this.parts.sessions.verify(token).then((session) => {
      if (!session) throw new InvalidCredentials('The token is invalid or has expired')
      return this.callerOf(session, via)
    })
  }

  private callerOf(session: SessionRecord, via: Caller['via']): Caller {
    const user = this.parts.users.get(session.username)
    if (!user) throw new InvalidCredentials('The token is invalid or has expired')
    const { username, role, must_change_password: mustChangePassword } = user
    return { username, role, via, sessionId: session.id, mustChangePassword }
  }

  private async byBasic(authorization: string): Promise<Caller> {
    const given = parseBasic(authorization)
    if (!given) throw new InvalidCredentials()
    const key = createHmac('sha256', this.basicKey).update(`${given.username}\0${given.password}`).digest('base64')
    const remembered = this.basic.get(key)
    if (remembered && remembered.until > this.now()) return this.callerByBasic(this.parts.users.get(remembered.username))
    this.basic.delete(key)
    const user = await this.checkPassword(given.username, given.password)
    if (user) this.remember(key, user.username)
    return this.callerByBasic(user)
  }

  private callerByBasic(user: UserRecord | null | undefined): Caller {
    if (!user) throw new InvalidCredentials()
    return { username: user.username, role: user.role, via: 'basic', mustChangePassword: user.must_change_password }
  }

  private remember(key: string, username: string): void {
    const oldest = this.basic.size >= BASIC_CACHE_SIZE ? this.basic.keys().next() : undefined
    if (oldest && !oldest.done) this.basic.delete(oldest.value)
    this.basic.set(key, { username, until: this.now() + BASIC_CACHE_MS })
  }

  private cookie(token: string, secure: boolean): string {
    return `${SESSION_COOKIE}=${token}; Path=/; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`
  }
}
