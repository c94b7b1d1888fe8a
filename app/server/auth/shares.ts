/** Share links: a token that opens one camera's still, its stream, or one recording, until it expires or is revoked. */
import { createHash, randomBytes } from 'node:crypto'
import type { Bus } from '../bus.ts'
import { type Caller, ROLES, type ShareScope, seesCamera } from '../caller.ts'
import { Conflict, NotFound } from '../errors.ts'
import type { Store, Table } from '../store/index.ts'
import { type Requester, SHARE_PREFIX } from './accounts.ts'
import { ha1 } from './ha1.ts'
import { open, seal } from './sealed.ts'
import type { RtspUser, SealedHa1, Users } from './users.ts'

const MAX_SHARES = 500
const TOKEN = /^[A-Za-z0-9_-]{43}$/

export interface ShareRecord extends ShareScope {
  readonly note: string
  readonly created_by: string
  /** Epoch milliseconds. */
  readonly created_at: number
  readonly expires_at: number
  /** SHA-256: the token has 256 random bits, so that nothing slower is needed. */
  readonly token_hash: string
  /** For RTSP, where the token is the password; null for the other kinds. */
  readonly sealed_ha1: SealedHa1 | null
}

export type NewShare = Pick<ShareRecord, 'kind' | 'camera' | 'recording' | 'note'> & { readonly seconds: number }

export class Shares {
  private readonly table: Table<string, ShareRecord>
  private readonly byHash = new Map<string, ShareRecord>()

  constructor(
    store: Store,
    private readonly users: Users,
    private readonly sealKey: Buffer,
    private readonly bus: Bus,
    private readonly now: () => number,
  ) {
    this.table = store.table('shares')
    for (const { value } of this.table.range()) this.byHash.set(value.token_hash, value)
  }

  create(by: Requester, { seconds, ...share }: NewShare): { token: string; record: ShareRecord } {
    this.removeExpired()
    if (this.byHash.size >= MAX_SHARES) throw new Conflict(`There are ${MAX_SHARES} share links already`, `limit ${MAX_SHARES}`)
    const id = randomBytes(8).toString('hex')
    const token = randomBytes(32).toString('base64url')
    const name = rtspName(id)
    const sealed = (algorithm: 'MD5' | 'SHA-256') => seal(this.sealKey, ha1(algorithm, name, token), name)
    const created = this.now()
    const record: ShareRecord = {
      ...share,
      id,
      created_by: by.username,
      created_at: created,
      expires_at: created + seconds * 1000,
      token_hash: hashed(token),
      sealed_ha1: share.kind === 'stream' ? { md5: sealed('MD5'), sha256: sealed('SHA-256') } : null,
    }
    this.table.put(id, record)
    this.byHash.set(record.token_hash, record)
    this.bus.emit('users-changed')
    this.publish('share_created', by, record)
    return { token, record }
  }

  /** Those that still open something, newest first. */
  list(username?: string): ShareRecord[] {
    const open = [...this.byHash.values()].filter((share) => this.holds(share))
    const own = open.filter((share) => username === undefined || share.created_by === username)
    return own.sort((a, b) => b.created_at - a.created_at)
  }

  revoke(by: Requester, id: string, ofOthers: boolean): void {
    const record = this.table.get(id)
    if (!record || (record.created_by !== by.username && !ofOthers)) throw new NotFound(`share ${id}`)
    this.remove(record)
    this.publish('share_revoked', by, record)
  }

  /** Null: no share's token. */
  byToken(token: string, via: Caller['via']): Caller | null {
    const share = TOKEN.test(token) ? this.byHash.get(hashed(token)) : undefined
    if (!share || !this.holds(share)) return null
    const { id, kind, camera, recording } = share
    const role = kind === 'recording' ? 'viewer' : 'guest'
    const scope: ShareScope = { id, kind, camera, recording }
    return { username: rtspName(id), role, via, mustChangePassword: false, cameras: [camera], share: scope }
  }

  rtspUsers(): RtspUser[] {
    return this.list().flatMap((share) => {
      const name = rtspName(share.id)
      const secret = (sealed: string | null | undefined) => (sealed ? open(this.sealKey, sealed, name) : null)
      const md5 = secret(share.sealed_ha1?.md5)
      if (md5 === null) return []
      return [{ name, ha1_md5: md5, ha1_sha256: secret(share.sealed_ha1?.sha256), cameras: [share.camera] }]
    })
  }

  /** When the next link expires: RTSP must be told. */
  nextExpiry(): number | null {
    const times = this.list().map(({ expires_at }) => expires_at)
    return times.length === 0 ? null : Math.min(...times)
  }

  /** A link opens no more than whoever made it may open now. */
  dropOrphans(username: string): void {
    for (const share of this.byHash.values()) if (share.created_by === username && !this.mayShare(share)) this.remove(share)
  }

  removeExpired(): void {
    for (const share of this.byHash.values()) if (share.expires_at <= this.now()) this.remove(share)
  }

  private holds(share: ShareRecord): boolean {
    return share.expires_at > this.now() && this.mayShare(share)
  }

  private mayShare(share: ShareRecord): boolean {
    const owner = this.users.get(share.created_by)
    return owner?.enabled === true && ROLES.indexOf(owner.role) >= ROLES.indexOf('operator') && seesCamera(owner, share.camera)
  }

  private remove(share: ShareRecord): void {
    this.table.remove(share.id)
    this.byHash.delete(share.token_hash)
    this.bus.emit('users-changed')
  }

  private publish(type: string, by: Requester, share: ShareRecord): void {
    const { id, kind, camera, recording } = share
    const data = { username: by.username, address: by.address, target: rtspName(id), kind, camera, recording }
    this.bus.publish('auth', type, data)
  }
}

function rtspName(id: string): string {
  return SHARE_PREFIX + id
}

function hashed(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}
