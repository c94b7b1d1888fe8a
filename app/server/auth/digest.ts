/**
 * HTTP Digest (RFC 7616) with MD5 and SHA-256, `qop=auth`. Nonces carry their own time and proof, so that handing them out costs no memory;
 * only nonces that were used with right credentials are remembered, to refuse a request that comes twice.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { digestHash, type Ha1Algorithm, REALM } from './ha1.ts'

const NONCE_MS = 5 * 60_000
const MAX_NONCES = 4096
/** Requests of one nonce may overtake each other by this much. */
const WINDOW = 64
const MAX_HEADER = 4096

export interface DigestAnswer {
  readonly username: string
  readonly uri: string
  readonly nonce: string
  readonly nc: string
  readonly cnonce: string
  readonly response: string
  readonly algorithm: Ha1Algorithm
}

/** One `name=value` of the header: a token or a quoted string, then a comma or the end. */
const PAIR = /\s*([A-Za-z*]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",;=]+))\s*(?:,|$)/y

/** Null for everything that is not an answer to one of our challenges. */
export function parseDigest(authorization: string): DigestAnswer | null {
  if (authorization.length > MAX_HEADER || !/^digest\s/i.test(authorization)) return null
  const values = new Map<string, string>()
  PAIR.lastIndex = 7
  while (PAIR.lastIndex < authorization.length) {
    const match = PAIR.exec(authorization)
    const name = match?.[1]?.toLowerCase()
    if (!match || !name || values.has(name)) return null
    values.set(name, match[2]?.replace(/\\(.)/g, '$1') ?? match[3] ?? '')
  }
  const value = (name: string) => values.get(name) ?? ''
  const algorithm = (values.get('algorithm') ?? 'MD5').toUpperCase()
  const username = values.get('username') ?? extended(value('username*'))
  const right =
    (algorithm === 'MD5' || algorithm === 'SHA-256') &&
    username &&
    value('realm') === REALM &&
    value('qop') === 'auth' &&
    value('userhash').toLowerCase() !== 'true' &&
    /^[0-9a-f]{8}$/i.test(value('nc')) &&
    value('nc') !== '00000000' &&
    value('cnonce') !== '' &&
    /^[0-9a-f]{32,64}$/i.test(value('response'))
  if (!right) return null
  const { nonce = '', uri = '', nc = '', cnonce = '' } = Object.fromEntries(values)
  return { username, uri, nonce, nc, cnonce, response: value('response').toLowerCase(), algorithm }
}

export function digestResponse(ha1: string, method: string, answer: Omit<DigestAnswer, 'username' | 'response'>): string {
  const { algorithm, nonce, nc, cnonce, uri } = answer
  return digestHash(algorithm, `${ha1}:${nonce}:${nc}:${cnonce}:auth:${digestHash(algorithm, `${method}:${uri}`)}`)
}

/** Whether the answer was made for this very request. `url` is the target as it came. */
export function meansTarget(uri: string, url: string): boolean {
  return uri === url || uri.replace(/^https?:\/\/[^/?#]*/i, '') === url
}

export function equalText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

export type NonceUse = 'fresh' | 'stale'

interface Used {
  readonly issued: number
  highest: number
  /** Bit i: `highest - i` was used. */
  seen: bigint
}

export class Nonces {
  private readonly key = randomBytes(32)
  /** In the order of their first use. */
  private readonly used = new Map<string, Used>()
  /** Nonces issued up to here were forgotten: they are used up, whatever they say. */
  private floor = 0

  constructor(
    private readonly now: () => number,
    private readonly max = MAX_NONCES,
  ) {}

  issue(): string {
    const body = `${this.now().toString(36)}.${randomBytes(9).toString('base64url')}`
    return `${body}.${this.proof(body)}`
  }

  /** Takes one use of a nonce; call it for right credentials only. Stale: the client shall try again with a new one. */
  take(nonce: string, nc: string): NonceUse {
    const issued = this.issued(nonce)
    const count = Number.parseInt(nc, 16)
    if (issued === null || Math.abs(this.now() - issued) > NONCE_MS) return 'stale'
    const known = this.used.get(nonce)
    if (known === undefined) {
      if (issued <= this.floor) return 'stale'
      this.makeRoom()
      this.used.set(nonce, { issued, highest: count, seen: 1n })
      return 'fresh'
    }
    if (count > known.highest) {
      const ahead = count - known.highest
      known.seen = ahead >= WINDOW ? 1n : ((known.seen << BigInt(ahead)) | 1n) & ((1n << BigInt(WINDOW)) - 1n)
      known.highest = count
      return 'fresh'
    }
    const behind = known.highest - count
    if (behind >= WINDOW || (known.seen >> BigInt(behind)) & 1n) return 'stale'
    known.seen |= 1n << BigInt(behind)
    return 'fresh'
  }

  get remembered(): number {
    return this.used.size
  }

  private issued(nonce: string): number | null {
    const match = /^(([0-9a-z]{1,12})\.[\w-]{12})\.([\w-]{22})$/.exec(nonce)
    if (!match?.[1] || !match[2] || !match[3] || !equalText(match[3], this.proof(match[1]))) return null
    return Number.parseInt(match[2], 36)
  }

  private proof(body: string): string {
    return createHmac('sha256', this.key).update(body).digest('base64url').slice(0, 22)
  }

  private makeRoom(): void {
    for (const [nonce, { issued }] of this.used) {
      const expired = this.now() - issued > NONCE_MS
      if (!expired && this.used.size < this.max) return
      this.used.delete(nonce)
      if (!expired) this.floor = Math.max(this.floor, issued)
    }
  }
}

/** One challenge; `stale`: the credentials were right, the nonce was not. */
export function digestChallenge(algorithm: Ha1Algorithm, nonce: string, stale = false): string {
  return `Digest realm="${REALM}", qop="auth", algorithm=${algorithm}, nonce="${nonce}"${stale ? ', stale=true' : ''}`
}

/** RFC 8187's form, for names beyond ASCII. */
function extended(value: string): string | undefined {
  const encoded = /^UTF-8'[^']*'(.*)$/i.exec(value)?.[1]
  if (encoded === undefined) return undefined
  try {
    return decodeURIComponent(encoded)
  } catch {
    return undefined
  }
}
