/** What may change while the server runs. Each request is answered by what holds when it comes. */
import { Cors } from './cors.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import { TrustedProxies } from './proxies.ts'
import { SecurityHeaders } from './security-headers.ts'

export interface PolicyOptions {
  /** Origins that browsers may call from. */
  readonly corsOrigins: readonly string[]
  /** Addresses and ranges of the reverse proxies whose X-Forwarded-For and X-Forwarded-Proto are believed. */
  readonly trustedProxies: readonly string[]
  /** Sends plain requests to the HTTPS listener. */
  readonly redirectToHttps: boolean
  /** Seconds for which browsers shall insist on HTTPS; 0: they are not told to. */
  readonly hstsMaxAge: number
  /** Requests under way at the same time, and WebSockets. */
  readonly maxRequests: number
  readonly maxWebSockets: number
}

const DEFAULTS: PolicyOptions = {
  corsOrigins: [],
  trustedProxies: [],
  redirectToHttps: false,
  hstsMaxAge: 0,
  maxRequests: DEFAULT_LIMITS.requests,
  maxWebSockets: DEFAULT_LIMITS.sockets,
}

export class Policy {
  #options = DEFAULTS
  cors = new Cors([])
  proxies = new TrustedProxies([])
  /** For connections that a client knows as safe, and for others. */
  headers = { secure: new SecurityHeaders(true, 0), plain: new SecurityHeaders(false, 0) }

  get options(): PolicyOptions {
    return this.#options
  }

  /** Throws for a range that is none, and has changed nothing then. */
  change(change: Partial<PolicyOptions>): void {
    const next = { ...this.#options, ...change }
    this.proxies = new TrustedProxies(next.trustedProxies)
    this.cors = new Cors(next.corsOrigins)
    this.headers = { secure: new SecurityHeaders(true, next.hstsMaxAge), plain: this.headers.plain }
    this.#options = next
  }
}
