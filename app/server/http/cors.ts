/** Cross-origin access: off unless origins are configured. Cookies are never allowed across origins. */
import type { Headers } from './exchange.ts'

const NONE: Headers = Object.freeze({})
const EXPOSED =
  'Content-Disposition, Content-Range, ETag, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset'
const REQUEST_HEADERS = 'Authorization, Content-Type, If-Modified-Since, If-None-Match, If-Range, Range'

export class Cors {
  readonly #origins: ReadonlySet<string>

  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins)
  }

  get enabled(): boolean {
    return this.#origins.size > 0
  }

  /** For every answer to a request with this `Origin`. */
  headers(origin: string): Headers {
    if (!this.enabled) return NONE
    if (!this.#allows(origin)) return { Vary: 'Origin' }
    return { 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': EXPOSED, Vary: 'Origin' }
  }

  /** In addition, for the answer to a preflight. */
  preflight(origin: string, allow: string): Headers {
    if (!this.#allows(origin)) return NONE
    return {
      'Access-Control-Allow-Methods': allow,
      'Access-Control-Allow-Headers': REQUEST_HEADERS,
      'Access-Control-Max-Age': '600',
    }
  }

  #allows(origin: string): boolean {
    return origin !== '' && (this.#origins.has(origin) || this.#origins.has('*'))
  }
}
