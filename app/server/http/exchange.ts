/**
 * One request and its answer: what is read from uWS before its request object dies, and the only place that writes a response.
 * Nothing is written after an abort or a second time.
 */

import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { STATUS_CODES } from 'node:http'
import { SESSION_COOKIE } from '../caller.ts'
import { type ClientAddress, clientAddress } from './address.ts'
import { endLingering } from './linger.ts'
import type { Policy } from './policy.ts'
import { lastItem, wholeHeader } from './proxies.ts'
import type { CredentialSource } from './route.ts'
import { isVersioned } from './router.ts'

export type Headers = Readonly<Record<string, string>>

/** The listener that a request came through. */
export interface Listener {
  readonly name: string
  readonly secure: boolean
  readonly policy: Pick<Policy, 'proxies' | 'headers'>
  /** What a 401 offers: each a header line of its own, as old clients want it. */
  readonly challenges: () => readonly string[]
}

/** Headers that only files and assets ask for. */
export interface Conditions {
  readonly ifNoneMatch: string
  readonly ifModifiedSince: string
  readonly ifRange: string
  readonly range: string
}

const STATUS_LINES = new Map(Object.entries(STATUS_CODES).map(([code, text]) => [Number(code), `${code} ${text}`]))
const NO_CONDITIONS: Conditions = { ifNoneMatch: '', ifModifiedSince: '', ifRange: '', range: '' }
const aborted = AbortSignal.abort()

export class Exchange {
  readonly method: string
  readonly path: string
  readonly rawQuery: string
  readonly authorization: string
  readonly cookie: string
  readonly origin: string
  readonly host: string
  readonly acceptEncoding: string
  /** A page asks, which shows its own form of login: a Basic challenge would make the browser open its dialog over it. */
  readonly fromPage: boolean
  readonly client: ClientAddress
  /** The other end of the connection: the client, or a proxy of ours. */
  readonly peer: string
  /** TLS, to us or to a proxy of ours. */
  readonly secure: boolean
  /** Answers in the envelope form. */
  readonly versioned: boolean
  conditions = NO_CONDITIONS
  /** As announced; not a number where the announcement is none. */
  bodyLength = 0
  /** More of the body may come than is worth swallowing: the answer closes the connection. */
  unreadBody = false
  /** All of the body has come. */
  bodyArrived = false
  /** Goes out with whatever the answer will be. */
  readonly headers: Record<string, string> = {}
  challenges: readonly string[] = []
  status = 0
  /** An answer has been started, or the client has gone. */
  done = false
  #gone = false
  #corked = true
  #controller: AbortController | null = null
  #onAbort: (() => void) | null = null
  #onEnd: (() => void) | null = null
  readonly #finished: (exchange: Exchange) => void

  constructor(
    readonly res: HttpResponse,
    req: HttpRequest,
    readonly listener: Listener,
    finished: (exchange: Exchange) => void,
  ) {
    this.method = req.getCaseSensitiveMethod()
    this.path = req.getUrl()
    this.rawQuery = (req.getQuery() as string | undefined) ?? ''
    this.authorization = req.getHeader('authorization')
    this.cookie = req.getHeader('cookie')
    this.fromPage = req.getHeader('x-requested-with') !== '' || this.cookie.includes(`${SESSION_COOKIE}=`)
    this.origin = req.getHeader('origin')
    this.host = req.getHeader('host')
    this.acceptEncoding = req.getHeader('accept-encoding')
    const peer = clientAddress(Buffer.from(res.getRemoteAddressAsText()).toString('latin1'))
    this.peer = peer.text
    const { proxies } = listener.policy
    if (proxies.none || !proxies.trusts(peer.text)) {
      this.client = peer
      this.secure = listener.secure
    } else {
      this.client = proxies.client(peer, wholeHeader(req, 'x-forwarded-for'))
      const protocol = lastItem(wholeHeader(req, 'x-forwarded-proto')).toLowerCase()
      this.secure = protocol === '' ? listener.secure : protocol === 'https'
    }
    this.versioned = isVersioned(this.path)
    this.#finished = finished
  }

  get isHead(): boolean {
    return this.method === 'HEAD'
  }

  /** The client has closed the connection before the answer was complete. */
  get gone(): boolean {
    return this.#gone
  }

  readConditions(req: HttpRequest): void {
    this.conditions = {
      ifNoneMatch: req.getHeader('if-none-match'),
      ifModifiedSince: req.getHeader('if-modified-since'),
      ifRange: req.getHeader('if-range'),
      range: req.getHeader('range'),
    }
  }

  credentials(token: string): CredentialSource {
    const { method, authorization, cookie, origin, host } = this
    const url = this.rawQuery === '' ? this.path : `${this.path}?${this.rawQuery}`
    return { method, url, authorization, cookie, origin, host, token, address: this.client.text, secure: this.secure }
  }

  /** Made only for handlers that look at it. */
  get signal(): AbortSignal {
    if (this.#gone) return aborted
    this.#controller ??= new AbortController()
    return this.#controller.signal
  }

  /** uWS's handler returns without an answer: from now on the client may go at any time. */
  detach(): void {
    this.#corked = false
    this.res.onAborted(() => {
      this.#gone = true
      this.done = true
      this.#controller?.abort()
      this.#onAbort?.()
      this.#end()
    })
  }

  /** Called when the request is over in any way. */
  onEnd(action: () => void): void {
    this.#onEnd = action
  }

  /** Called when the client goes; at once if it has gone already. */
  onAbort(action: () => void): void {
    if (this.#gone) action()
    else this.#onAbort = action
  }

  /** A whole answer. */
  send(status: number, headers: Headers, body: string | Uint8Array): void {
    if (this.done) return
    this.done = true
    this.#cork(() => {
      this.#writeHead(status, headers)
      if (this.isHead) {
        this.res.writeHeader('Content-Length', String(typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength))
        this.res.endWithoutBody()
      } else if (this.unreadBody && !this.bodyArrived) {
        this.res.writeHeader('Connection', 'close')
        endLingering(this.res, Buffer.from(body))
      } else {
        this.res.end(body)
      }
    })
    this.#end()
  }

  /** An answer that has no body (204, 304), or whose body HEAD leaves out. */
  sendHead(status: number, headers: Headers): void {
    if (this.done) return
    this.done = true
    this.#cork(() => {
      this.#writeHead(status, headers)
      this.res.endWithoutBody()
    })
    this.#end()
  }

  /** The head of an answer whose body goes out in pieces; `complete` must follow, unless the client goes. */
  beginStream(status: number, headers: Headers): void {
    this.done = true
    this.#writeHead(status, headers)
  }

  complete(): void {
    if (!this.#gone) this.#end()
  }

  /** An answer that has begun cannot be completed: only a broken connection tells the client. */
  abandon(): void {
    if (!this.#gone) this.res.close()
  }

  #end(): void {
    this.#onEnd?.()
    this.#finished(this)
  }

  #cork(write: () => void): void {
    if (this.#corked) write()
    else this.res.cork(write)
  }

  #writeHead(status: number, headers: Headers): void {
    this.status = status
    const { res } = this
    // What the library writes by itself.
    if (status !== 200) res.writeStatus(STATUS_LINES.get(status) ?? String(status))
    const security = this.secure ? this.listener.policy.headers.secure : this.listener.policy.headers.plain
    security.write(res, headers)
    for (const name in this.headers) {
      if (name === 'Vary' && headers.Vary !== undefined) continue
      res.writeHeader(name, safe(this.headers[name] ?? ''))
    }
    for (const challenge of this.challenges) res.writeHeader('WWW-Authenticate', safe(challenge))
    for (const name in headers) {
      const value = headers[name] ?? ''
      const both = name === 'Vary' && this.headers.Vary !== undefined
      res.writeHeader(name, safe(both ? `${this.headers.Vary}, ${value}` : value))
    }
  }
}

/** A header must not be able to end itself, wherever its value came from. */
function safe(value: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must go
  return /[\0-\x1f\x7f]/.test(value) ? value.replace(/[\0-\x1f\x7f]/g, ' ') : value
}
