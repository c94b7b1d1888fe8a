/** Token buckets by client address and class of request. */
import type { RateClass } from './route.ts'

export type RateLimitMode = 'device' | 'overview' | 'off'

export interface RateDecision {
  readonly allowed: boolean
  readonly limit: number
  readonly period: 'second' | 'minute'
  readonly remaining: number
  /** Epoch seconds at which the whole budget is there again. */
  readonly reset: number
  /** Seconds until the next request may succeed; 0 when allowed. */
  readonly retryAfter: number
}

interface Bucket {
  tokens: number
  /** When `tokens` was true, in ms. */
  at: number
}

interface Budget {
  readonly limit: number
  readonly period: 'second' | 'minute'
}

const DEVICE: Readonly<Record<RateClass, Budget>> = {
  image: { limit: 10, period: 'second' },
  file: { limit: 5, period: 'second' },
  api: { limit: 100, period: 'second' },
  upload: { limit: 2, period: 'second' },
}
const OVERVIEW: Budget = { limit: 100, period: 'minute' }

export class RateLimiter {
  readonly #buckets: Readonly<Record<RateClass | 'overview', RecentMap<Bucket>>>

  constructor(
    readonly mode: () => RateLimitMode,
    readonly now: () => number,
    /** Addresses remembered per class; the longest unseen are forgotten first. */
    addresses = 4096,
  ) {
    const recent = () => new RecentMap<Bucket>(addresses)
    this.#buckets = { image: recent(), file: recent(), api: recent(), upload: recent(), overview: recent() }
  }

  /** Null where no limit is in force. `key` is what `addressKey` makes of the client's address. */
  take(key: string, rate: RateClass): RateDecision | null {
    const mode = this.mode()
    if (mode === 'off') return null
    const budget = mode === 'device' ? DEVICE[rate] : OVERVIEW
    const { limit, period } = budget
    const perMs = limit / (period === 'second' ? 1000 : 60_000)
    const buckets = this.#buckets[mode === 'device' ? rate : 'overview']
    const now = this.now()

    let bucket = buckets.get(key)
    if (bucket === undefined) {
      bucket = { tokens: limit, at: now }
      buckets.set(key, bucket)
    }
    // A clock that was set back must not empty or fill the bucket.
    bucket.tokens = Math.min(limit, bucket.tokens + Math.max(0, now - bucket.at) * perMs)
    bucket.at = now
    // Sums of fractions come out a hair below the whole.
    const allowed = bucket.tokens >= 1 - 1e-9
    if (allowed) bucket.tokens = Math.max(0, bucket.tokens - 1)
    return {
      allowed,
      limit,
      period,
      remaining: Math.floor(bucket.tokens + 1e-9),
      reset: Math.ceil((now + (limit - bucket.tokens) / perMs) / 1000),
      retryAfter: allowed ? 0 : Math.max(1, Math.ceil((1 - bucket.tokens) / perMs / 1000)),
    }
  }
}

/** A map of at most `cap` entries in two generations: what was not used while one filled up is dropped as a whole. */
export class RecentMap<V> {
  #young = new Map<string, V>()
  #old = new Map<string, V>()

  constructor(readonly cap: number) {}

  get size(): number {
    return this.#young.size + this.#old.size
  }

  get(key: string): V | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) {
      this.#old.delete(key)
      this.set(key, old)
    }
    return old
  }

  set(key: string, value: V): void {
    if (this.#young.size >= this.cap / 2) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, value)
  }
}
