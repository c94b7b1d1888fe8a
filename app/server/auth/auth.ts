/** Who may come in: the component that ties accounts, sessions and every kind of credentials together. */
import { randomBytes } from 'node:crypto'
import type { Bus } from '../bus.ts'
import { type Caller, type CredentialSource, SESSION_COOKIE } from '../caller.ts'
import type { Component } from '../component.ts'
import { ApiError, InvalidCredentials, NotFound, PermissionDenied } from '../errors.ts'
import type { Logger } from '../log.ts'
import { loadOrCreateKey } from '../platform/index.ts'
import type { Store } from '../store/index.ts'
import { Accounts, type Requester } from './accounts.ts'
import { CarryOver } from './carry-over.ts'
import { parseBasic, parseBearer, sameOrigin, sessionCookie } from './credentials.ts'
import { digestChallenge, digestResponse, equalText, meansTarget, Nonces, parseDigest } from './digest.ts'
import { ha1, REALM } from './ha1.ts'
import { Lockout } from './lockout.ts'
import { PasswordGate } from './password-gate.ts'
import { checkPasswordRules, PasswordHasher } from './passwords.ts'
import { type SessionRecord, Sessions } from './sessions.ts'
import { Shares } from './shares.ts'
import { TwoFactor } from './totp.ts'
import { AccountTransfer } from './transfer.ts'
import { type RtspUser, type UserRecord, Users } from './users.ts'

export const FACTORY_USERNAME = 'admin'
/** Documented in the README; good for nothing but the first login and its own change. */
export const FACTORY_PASSWORD = 'admin'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

export interface AuthOptions {
  /** Folder of the key files. */
  readonly keyFolder: string
  /** Where accounts wait for the end of a factory reset, and which boot of the device this is; undefined: they never do. */
  readonly carryOver?: { readonly file: string; readonly bootId: string }
  /** The admin's password at first start; undefined: the factory password, to be changed. */
  readonly adminPassword: string | undefined
  /** Asked at each login. */
  readonly sessionLifetimeMs: () => number
  /** Pages of these origins may use Basic and Digest credentials that a browser remembers. */
  readonly trustedOrigins: () => readonly string[]
}

export interface LoginRequest {
  readonly username: string
  readonly password: string
  readonly otp?: string
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
  readonly lockout: Lockout
  readonly gate: PasswordGate
  readonly accounts: Accounts
  readonly twoFactor: TwoFactor
  readonly shares: Shares
  readonly transfer: AccountTransfer
  readonly nonces: Nonces
  readonly carryOver: { readonly present: boolean; write(): void; remove(): void }
}

/** The server that asks itself whether it answers. */
const SELF: Caller = { username: 'device', role: 'guest', via: 'bearer', mustChangePassword: false, cameras: [] }

export class Auth implements Component {
  private opened: Opened | undefined
  /** Opens what a guest may see, for the server's own questions; it is nowhere but in memory. */
  readonly selfToken = randomBytes(32).toString('base64url')
  private readonly onUserChanged = ({ username }: { username: string }) => this.shares.dropOrphans(username)

  constructor(
    private readonly store: Store,
    private readonly bus: Bus,
    private readonly options: AuthOptions,
    private readonly log: Logger,
    private readonly now: () => number = Date.now,
    private readonly hasher = new PasswordHasher(),
  ) {}

  async start(): Promise<void> {
    const { store, bus, now, hasher } = this
    const { keyFolder, adminPassword } = this.options
    const { file, bootId } = this.options.carryOver ?? { file: `${keyFolder}/users-carry-over.json`, bootId: '' }
    const carried = new CarryOver(file, bootId, this.log)
    const sealKeyFile = `${keyFolder}/seal.key`
    carried.takeIn(store, sealKeyFile)
    const sealKey = loadOrCreateKey(sealKeyFile, 32)
    const current = () => ({ sealKey, users: users.all() })
    const users: Users = new Users(store, sealKey, () => carried.renew(current))
    const sessions = new Sessions(store, loadOrCreateKey(`${keyFolder}/token.key`, 32), now, (sessionId) => {
      this.bus.emit('session-ended', { sessionId })
    })
    const lockout = new Lockout(store, now)
    const gate = new PasswordGate(users, lockout, hasher, bus, now)
    const accounts = new Accounts({ users, sessions, gate, hasher, lockout, bus })
    const twoFactor = new TwoFactor(users, gate, sealKey, bus, now)
    const shares = new Shares(store, users, sealKey, bus, now)
    const transfer = new AccountTransfer(users, accounts, sealKey, bus)
    const carryOver = {
      get present() {
        return carried.present
      },
      write: () => carried.write(current()),
      remove: () => carried.remove(),
    }
    const nonces = new Nonces(now)
    this.opened = { users, sessions, lockout, gate, accounts, twoFactor, shares, transfer, nonces, carryOver }
    bus.on('user-changed', this.onUserChanged)
    if (users.size > 0) return
    const password = adminPassword ?? FACTORY_PASSWORD
    if (adminPassword !== undefined) checkPasswordRules(adminPassword, 'admin-password-file')
    users.create(
      { username: FACTORY_USERNAME, role: 'admin', email: '', enabled: true, protocols: ['rtsp'], cameras: null },
      { password, hash: await hasher.hash(password), mustChange: adminPassword === undefined },
    )
    this.log.info({ username: FACTORY_USERNAME }, 'factory account created')
  }

  stop(): void {
    this.bus.off('user-changed', this.onUserChanged)
    this.opened = undefined
  }

  get users(): Users {
    return this.parts.users
  }

  get accounts(): Accounts {
    return this.parts.accounts
  }

  get lockout(): Lockout {
    return this.parts.lockout
  }

  get shares(): Shares {
    return this.parts.shares
  }

  get transfer(): AccountTransfer {
    return this.parts.transfer
  }

  /** The accounts for after a factory reset. */
  get carryOver(): Opened['carryOver'] {
    return this.parts.carryOver
  }

  get twoFactor(): TwoFactor {
    return this.parts.twoFactor
  }

  async login({ username, password, otp }: LoginRequest, address: string, secure: boolean): Promise<Login> {
    const { gate, lockout, sessions, twoFactor } = this.parts
    const user = await gate.check(username, password, address)
    twoFactor.require(user, otp, address)
    lockout.succeed(username)
    const { token, session } = await sessions.create(username, address, this.options.sessionLifetimeMs())
    this.bus.publish('auth', 'login', { username, address })
    return { token, expiresAt: new Date(session.expires_at).toISOString(), cookie: this.cookie(token, secure), user }
  }

  logout(by: Requester): void {
    if (by.sessionId === undefined) return
    this.endSession(by.sessionId)
    this.bus.publish('auth', 'logout', { username: by.username, address: by.address })
  }

  /** Sessions that have not ended, newest first; of everybody where no name is given. */
  sessions(username?: string): SessionRecord[] {
    return this.parts.sessions.list(username)
  }

  /** Ends one session; those of others are for admins. */
  revoke(by: Requester, id: string, ofOthers: boolean): void {
    const session = this.parts.sessions.get(id)
    if (!session || (session.username !== by.username && !ofOthers)) throw new NotFound(`session ${id}`)
    this.endSession(id)
    const { username, address } = by
    this.bus.publish('auth', 'session_revoked', { username, address, target: session.username, session: id })
  }

  /** The challenges of a 401, the strongest first. */
  challenges(): string[] {
    const { nonces } = this.parts
    const digests = (['SHA-256', 'MD5'] as const).map((algorithm) => digestChallenge(algorithm, nonces.issue()))
    return [...digests, `Basic realm="${REALM}", charset="UTF-8"`]
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
    if (authorization && !SAFE_METHODS.has(source.method)) this.refuseForeignPage(source)
    if (/^digest\s/i.test(authorization)) return this.byDigest(source)
    if (authorization) return this.byBasic(source)
    if (token) return this.byToken(token, 'query')
    const cookie = source.cookie ? sessionCookie(source.cookie) : null
    if (!cookie) return null
    if (!SAFE_METHODS.has(source.method) && !sameOrigin(source.origin, source.host)) {
      throw new PermissionDenied('a session cookie is only accepted from the same origin')
    }
    return this.byToken(cookie, 'cookie')
  }

  /** A browser adds remembered Basic and Digest credentials to what any page sends; only pages of ours and configured ones may. */
  refuseForeignPage({ origin, host }: CredentialSource): void {
    if (origin === '' || sameOrigin(origin, host) || this.options.trustedOrigins().includes(origin)) return
    throw new PermissionDenied('these credentials are not accepted from a page of another origin')
  }

  /** The owner of a token. */
  async byBearer(token: string): Promise<Caller> {
    return this.byToken(token, 'bearer')
  }

  /** All that the helper lets in. */
  rtspUsers(): RtspUser[] {
    return [...this.parts.users.rtspUsers(), ...this.parts.shares.rtspUsers()]
  }

  /** RTSP's failures count like all others. */
  rtspFailed(username: string | null, address: string): void {
    this.parts.gate.note(username, address, 'rtsp')
  }

  private get parts(): Opened {
    if (!this.opened) throw new Error('authentication is not started')
    return this.opened
  }

  private endSession(id: string): void {
    this.parts.sessions.end(id)
    this.bus.emit('session-ended', { sessionId: id })
  }

  private byToken(token: string, via: Caller['via']): Caller | Promise<Caller> {
    const known = this.parts.sessions.cached(token)
    if (known) return this.callerOf(known, via)
    if (equalText(token, this.selfToken)) return SELF
    const shared = via === 'cookie' ? null : this.parts.shares.byToken(token, via)
    if (shared) return shared
    return this.parts.sessions.verify(token).then((session) => {
      if (!session) throw new InvalidCredentials('The token is invalid or has expired')
      return this.callerOf(session, via)
    })
  }

  private callerOf(session: SessionRecord, via: Caller['via']): Caller {
    const user = this.parts.users.get(session.username)
    if (!user?.enabled) throw new InvalidCredentials('The token is invalid or has expired')
    const { username, role, must_change_password: mustChangePassword, cameras } = user
    return { username, role, via, sessionId: session.id, expiresAt: session.expires_at, mustChangePassword, cameras }
  }

  private async byBasic({ authorization, address }: CredentialSource): Promise<Caller> {
    const given = parseBasic(authorization)
    if (!given) throw new InvalidCredentials()
    const user = await this.parts.gate.checkOften(given.username, given.password, address)
    return this.direct(user, 'basic')
  }

  private byDigest({ authorization, method, url, address }: CredentialSource): Caller {
    const { users, lockout, gate, nonces } = this.parts
    const answer = parseDigest(authorization)
    if (!answer || !meansTarget(answer.uri, url)) throw new InvalidCredentials()
    const { username, algorithm, nonce, nc } = answer
    lockout.check(username, address)
    const user = users.get(username)
    // An account without the secret costs the same work and fails the same way as one that does not exist.
    const secret = user?.enabled ? users.ha1(user, algorithm) : null
    const right = digestResponse(secret ?? ha1(algorithm, username, ''), method, answer)
    if (!equalText(answer.response, right) || !user || secret === null) return gate.fail(username, address)
    if (nonces.take(nonce, nc) === 'stale') {
      throw new ApiError('INVALID_CREDENTIALS', 'The nonce has expired', '', {
        'WWW-Authenticate': digestChallenge(algorithm, nonces.issue(), true),
      })
    }
    return this.direct(user, 'digest')
  }

  /** The caller whose credentials came with the request itself, where there is no place for a code. */
  private direct(user: UserRecord, via: Caller['via']): Caller {
    if (user.two_factor?.enabled) {
      throw new ApiError('OTP_REQUIRED', 'This account logs in with a code; use a token instead', user.username)
    }
    const { username, role, must_change_password: mustChangePassword, cameras } = user
    // The count of failures is not reset: somebody who polls would cover for somebody who guesses.
    return { username, role, via, mustChangePassword, cameras }
  }

  private cookie(token: string, secure: boolean): string {
    return `${SESSION_COOKIE}=${token}; Path=/; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`
  }
}
