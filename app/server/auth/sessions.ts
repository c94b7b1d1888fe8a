/** Sessions behind tokens. A token is believed only while its session is in the store: logout and password change end it at once. */
import { randomUUID } from 'node:crypto'
import { jwtVerify, SignJWT } from 'jose'
import type { Store, Table } from '../store/index.ts'

/** A clock that is corrected by less ends no session. */
const CLOCK_SLACK_MS = 300_000

export interface SessionRecord {
  readonly id: string
  readonly username: string
  /** Epoch milliseconds. */
  readonly created_at: number
  readonly expires_at: number
  readonly address: string
}

const ISSUER = 'camera-server'
const MAX_CACHED_TOKENS = 4096
const MAX_SESSIONS_PER_USER = 100

export class Sessions {
  private readonly table: Table<string, SessionRecord>
  /** Tokens whose signature was checked, oldest first. A hit costs no cryptography. */
  private readonly verified = new Map<string, SessionRecord>()

  constructor(
    private readonly store: Store,
    private readonly key: Uint8Array,
    private readonly now: () => number,
    /** Told of sessions that ended without anybody asking. */
    private readonly onPruned: (id: string) => void,
  ) {
    this.table = store.table('sessions')
  }

  async create(username: string, address: string, lifetimeMs: number): Promise<{ token: string; session: SessionRecord }> {
    this.prune(username)
    const created = this.now()
    const session = { id: randomUUID(), username, created_at: created, expires_at: created + lifetimeMs, address }
    // Whoever is to make space on a full disk must be let in; how many an account has is bounded.
    this.store.urgent(() => this.table.put(session.id, session))
    const token = await new SignJWT({ sid: session.id })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setSubject(username)
      .setIssuer(ISSUER)
      .setIssuedAt(Math.floor(created / 1000))
      .setExpirationTime(Math.ceil(session.expires_at / 1000))
      .sign(this.key)
    return { token, session }
  }

  /** The session of a token that was verified before and still holds; undefined when `verify` must look closer. */
  cached(token: string): SessionRecord | undefined {
    const session = this.verified.get(token)
    return session && this.holds(session) ? session : undefined
  }

  /** Null for a token that is forged, expired, or whose session has ended. */
  async verify(token: string): Promise<SessionRecord | null> {
    try {
      const { payload } = await jwtVerify(token, this.key, {
        issuer: ISSUER,
        algorithms: ['HS256'],
        currentDate: new Date(this.now()),
      })
      const session = typeof payload.sid === 'string' ? this.table.get(payload.sid) : undefined
      if (!session || session.username !== payload.sub || !this.holds(session)) return null
      this.remember(token, session)
      return session
    } catch {
      return null
    }
  }

  /** One that begins in the future was made while the clock was ahead; it would last for as long as the clock was wrong. */
  private holds({ created_at, expires_at }: SessionRecord): boolean {
    const now = this.now()
    return now < expires_at && created_at <= now + CLOCK_SLACK_MS
  }

  get(id: string): SessionRecord | undefined {
    const session = this.table.get(id)
    return session && this.holds(session) ? session : undefined
  }

  /** Those that have not ended, newest first. */
  list(username?: string): SessionRecord[] {
    const all = [...this.table.range()].map(({ value }) => value)
    const open = all.filter((s) => s.expires_at > this.now() && (username === undefined || s.username === username))
    return open.sort((a, b) => b.created_at - a.created_at)
  }

  end(id: string): void {
    this.table.remove(id)
    this.forget((session) => session.id === id)
  }

  /** Ends all sessions of a user but `except`; returns the ids of the ended. */
  endAll(username: string, except?: string): string[] {
    const ended = [...this.table.range()].map(({ value }) => value).filter((s) => s.username === username && s.id !== except)
    for (const { id } of ended) this.table.remove(id)
    this.forget((session) => session.username === username && session.id !== except)
    return ended.map(({ id }) => id)
  }

  /** Drops what has expired, and the oldest sessions of a user who has very many. */
  private prune(username: string): void {
    const all = [...this.table.range()].map(({ value }) => value)
    const own = all.filter((s) => s.username === username).sort((a, b) => b.created_at - a.created_at)
    const surplus = new Set(own.slice(MAX_SESSIONS_PER_USER - 1))
    for (const session of all) {
      if (session.expires_at > this.now() && !surplus.has(session)) continue
      this.end(session.id)
      this.onPruned(session.id)
    }
  }

  private remember(token: string, session: SessionRecord): void {
    this.verified.set(token, session)
    const oldest = this.verified.size > MAX_CACHED_TOKENS ? this.verified.keys().next() : undefined
    if (oldest && !oldest.done) this.verified.delete(oldest.value)
  }

  private forget(gone: (session: SessionRecord) => boolean): void {
    for (const [token, session] of this.verified) if (gone(session)) this.verified.delete(token)
  }
}
