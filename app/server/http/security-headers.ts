/** Headers that keep browsers from doing more with an answer than it is meant for. */
import type { HttpResponse } from 'uWebSockets.js'
import type { Headers } from './exchange.ts'

/** A page of ours. Only what its own origin serves, and no frame around it. */
export function pageHeaders(host: string, secure: boolean): Headers {
  return {
    'Content-Security-Policy': [
      "default-src 'self'",
      "img-src 'self' blob: data:",
      "media-src 'self' blob:",
      // Older browsers do not count a WebSocket to the same host as 'self'.
      `connect-src 'self'${isHost(host) ? ` ws://${host} wss://${host}` : ''}`,
      "style-src 'self' 'unsafe-inline'",
      "object-src 'none'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "form-action 'self'",
    ].join('; '),
    'Permissions-Policy':
      'accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), ' +
      'payment=(), usb=()',
    // Browsers heed it over TLS only, and complain elsewhere.
    ...(secure && { 'Cross-Origin-Opener-Policy': 'same-origin' }),
  }
}

/** Pictures, films and files that may be opened by themselves: shown, but nothing in them runs. */
export const BINARY_CSP =
  "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"

const API_CSP = "default-src 'none'; frame-ancestors 'none'"
const NO_STORE = 'no-store'

/**
 * What every answer carries. One value that holds the lines after it as well: a call into the library costs as much as all the bytes,
 * and these texts are ours, so that nothing can be smuggled in.
 */
export class SecurityHeaders {
  readonly #base: string
  readonly #api: string

  constructor(secure: boolean, hstsMaxAge: number) {
    this.#base = ['nosniff', 'X-Frame-Options: DENY', 'Referrer-Policy: no-referrer']
      .concat(secure && hstsMaxAge > 0 ? [`Strict-Transport-Security: max-age=${hstsMaxAge}`] : [])
      .join('\r\n')
    this.#api = [
      this.#base,
      `Content-Security-Policy: ${API_CSP}`,
      'Cross-Origin-Resource-Policy: same-origin',
      `Cache-Control: ${NO_STORE}`,
    ].join('\r\n')
  }

  write(res: HttpResponse, own: Headers): void {
    const policy = own['Content-Security-Policy']
    const cache = own['Cache-Control']
    if (policy === undefined && cache === undefined) {
      res.writeHeader('X-Content-Type-Options', this.#api)
      return
    }
    res.writeHeader('X-Content-Type-Options', this.#base)
    if (policy === undefined) res.writeHeader('Content-Security-Policy', API_CSP)
    if (cache === undefined) res.writeHeader('Cache-Control', NO_STORE)
  }
}

/** Name or address with an optional port, as `Host` may carry it, and nothing that means anything elsewhere. */
export function isHost(host: string): boolean {
  return /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?$/.test(host)
}
