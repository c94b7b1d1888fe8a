/**
 * The way of a request: target, route, rate limit, authentication, role, password gate, body, validation, handler, answer. It stays
 * synchronous as long as nothing has to be waited for; uWS's request object is dead after the first wait.
 */

import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { actingAs } from '../actor.ts'
import { ApiError, InvalidCredentials, InvalidRequest, NotFound, PermissionDenied } from '../errors.ts'
import { assetFor, type StaticAssets } from './assets.ts'
import { BodyCollector, type BodyLimits, tooLarge } from './body.ts'
import { BodyStream } from './body-stream.ts'
import { Exchange, type Listener } from './exchange.ts'
import { Gate } from './gate.ts'
import { isJsonType, parseJson } from './json.ts'
import type { HttpLimits } from './limits.ts'
import { FORM_OVERHEAD, FormBody } from './multipart.ts'
import type { Policy } from './policy.ts'
import type { RateLimiter } from './rate-limit.ts'
import { httpsLocation, WATCHDOG_PATHS } from './redirect.ts'
import { sendError, sendRateLimited, sendReply } from './reply.ts'
import { type Authenticate, type Caller, type HandlerInput, type RateClass, type Route, roleAllows } from './route.ts'
import { allowed, type Match, Router } from './router.ts'
import { parseQuery } from './target.ts'
import { Validator } from './validation.ts'

export interface PipelineOptions {
  readonly routes: readonly Route[]
  readonly authenticate: Authenticate
  readonly log: Logger
  readonly limits: HttpLimits
  readonly policy: Policy
  readonly rateLimiter: RateLimiter
  readonly assets: StaticAssets
  /** Where a WebSocket is expected; a plain request there is told so. */
  readonly websocketPath: string | null
  /** The port that plain requests are sent to; null: they are answered. */
  readonly redirectPort: () => number | null
  readonly now: () => number
}

/** What is known of a request once its route was found. */
interface Request {
  readonly exchange: Exchange
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
  readonly query: ReadonlyMap<string, string>
  readonly body: BodyCollector | BodyStream | null
  readonly contentType: string
}

const NO_QUERY: ReadonlyMap<string, string> = new Map()

/** What a handler gets. A class, for an object with a getter of its own is slow to make. */
class Input {
  readonly address: string
  readonly peer: string
  readonly secure: boolean
  readonly #exchange: Exchange

  constructor(
    readonly params: unknown,
    readonly query: unknown,
    readonly body: unknown,
    readonly caller: Caller | null,
    exchange: Exchange,
  ) {
    this.address = exchange.client.text
    this.peer = exchange.peer
    this.secure = exchange.secure
    this.#exchange = exchange
  }

  get signal(): AbortSignal {
    return this.#exchange.signal
  }
}

export class Pipeline {
  readonly #options: PipelineOptions
  readonly #router: Router
  readonly #validators = new Map<Route, Validator>()
  readonly #gate: Gate<BodyLimits>
  readonly #uploads: Gate
  readonly #streams: Gate
  readonly #inFlight = new Set<Exchange>()
  #whenIdle: (() => void) | null = null

  constructor(options: PipelineOptions) {
    this.#options = options
    this.#router = new Router(options.routes)
    const { jsonBodyBytes, bodyDeadlineMs, bodiesAtOnce, bodiesPerClient } = options.limits
    const { uploadsAtOnce, uploadsPerClient, streamsAtOnce, streamsPerClient } = options.limits
    this.#gate = new Gate({
      bytes: jsonBodyBytes,
      deadlineMs: bodyDeadlineMs,
      atOnce: bodiesAtOnce,
      perClient: bodiesPerClient,
    })
    this.#uploads = new Gate({ atOnce: uploadsAtOnce, perClient: uploadsPerClient })
    const streams = { atOnce: streamsAtOnce, perClient: streamsPerClient }
    this.#streams = new Gate(streams, 'Too many files are being sent', 'downloads')
  }

  /** Requests without a complete answer. */
  get inFlight(): number {
    return this.#inFlight.size
  }

  handle(res: HttpResponse, req: HttpRequest, listener: Listener): void {
    const exchange = new Exchange(res, req, listener, this.#finished)
    try {
      const pending = this.#run(exchange, req)
      if (pending !== undefined) void pending.catch((error: unknown) => this.#fail(exchange, error))
    } catch (error) {
      this.#fail(exchange, error)
    }
    if (!exchange.done) {
      this.#inFlight.add(exchange)
      exchange.detach()
    }
  }

  /** Resolves when every answer is complete, or after `ms`. */
  async drain(ms: number): Promise<void> {
    if (this.#inFlight.size === 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#whenIdle = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#whenIdle = null
  }

  #run(exchange: Exchange, req: HttpRequest): Promise<void> | undefined {
    const { cors } = this.#options.policy
    if (cors.enabled) Object.assign(exchange.headers, cors.headers(exchange.origin))
    if (this.redirected(exchange)) return
    const reading = exchange.method === 'GET'
    if (!reading) this.#readBodyHead(exchange, req)

    const match = this.#router.find(exchange.isHead ? 'GET' : exchange.method, exchange.path)
    if (match === null || match.endpoint === null) return this.#unrouted(exchange, req, match)
    const { route } = match.endpoint
    if ('binary' in route.response) exchange.readConditions(req)

    if (this.limited(exchange, route.rate)) return
    this.#refuseSurplus(exchange)
    if (!reading && route.upload === undefined) this.#refuseLongBody(exchange, route)
    const stream = route.upload === undefined ? null : this.#stream(exchange)
    const query = exchange.rawQuery === '' ? NO_QUERY : parseQuery(exchange.rawQuery)
    const caller = this.#authenticate(exchange, route, query.get('token') ?? '')
    if (!(caller instanceof Promise)) {
      authorise(route, caller)
      return this.#receive(this.#newRequest(exchange, req, match, route, query, stream), caller)
    }
    // Handled below; but should the body be refused before, nobody would, and that ends the process.
    caller.catch(() => undefined)
    // The body comes in meanwhile: there is no telling it to wait.
    const request = this.#newRequest(exchange, req, match, route, query, stream)
    return caller.then((known) => {
      authorise(route, known)
      return this.#receive(request, known)
    })
  }

  #newRequest(
    exchange: Exchange,
    req: HttpRequest,
    match: Match,
    route: Route,
    query: ReadonlyMap<string, string>,
    stream: BodyStream | null,
  ): Request {
    const reading = exchange.method === 'GET' || exchange.isHead
    const body = reading || route.upload !== undefined ? stream : this.#collect(exchange, route)
    return { exchange, route, params: match.params, query, body, contentType: body === null ? '' : req.getHeader('content-type') }
  }

  /** No route: an asset, a preflight, or an error. */
  #unrouted(exchange: Exchange, req: HttpRequest, match: Match | null): Promise<void> | undefined {
    const { assets, policy, websocketPath } = this.#options
    const reading = exchange.method === 'GET' || exchange.isHead
    const asset = match === null ? assetFor(assets, exchange.path, exchange.listener.name) : null
    if (asset !== null && reading) {
      if ('name' in asset) {
        exchange.readConditions(req)
        return assets.send(exchange, asset.name)
      }
      exchange.sendHead(302, { Location: asset.location, 'Content-Length': '0' })
      return
    }
    if (this.limited(exchange, 'api')) return
    if (match === null && asset === null) {
      if (exchange.path === websocketPath) {
        throw new ApiError('NOT_FOUND', 'This address speaks WebSocket only', exchange.path, { Upgrade: 'websocket' })
      }
      throw new NotFound(exchange.path)
    }
    const allow = allowed(match?.methods ?? ['GET'])
    if (exchange.method === 'OPTIONS') exchange.sendHead(204, { Allow: allow, ...policy.cors.preflight(exchange.origin, allow) })
    else throw new ApiError('METHOD_NOT_ALLOWED', `${exchange.method} is not allowed here`, allow, { Allow: allow })
  }

  /** True: the answer was that there were too many requests. */
  limited(exchange: Exchange, rate: RateClass): boolean {
    const decision = this.#options.rateLimiter.take(exchange.client.key, rate)
    if (decision === null) return false
    const { headers } = exchange
    headers['X-RateLimit-Limit'] = String(decision.limit)
    headers['X-RateLimit-Remaining'] = String(decision.remaining)
    headers['X-RateLimit-Reset'] = String(decision.reset)
    if (decision.allowed) return false
    sendRateLimited(exchange, decision, this.#options.now())
    return true
  }

  /** True: the answer was a redirection to HTTPS. */
  redirected(exchange: Exchange): boolean {
    const location = httpsLocation(exchange, this.#options.redirectPort())
    if (location === null) return false
    exchange.send(308, { Location: location }, '')
    return true
  }

  #authenticate(exchange: Exchange, route: Route, token: string): Promise<Caller | null> | Caller | null {
    if (route.access !== 'public') return this.#options.authenticate(exchange.credentials(token))
    // A public operation works with wrong credentials as it does without.
    try {
      const caller = this.#options.authenticate(exchange.credentials(token))
      return caller instanceof Promise ? caller.catch(nobody) : caller
    } catch (error) {
      return nobody(error)
    }
  }

  #readBodyHead(exchange: Exchange, req: HttpRequest): void {
    exchange.bodyLength = Number(req.getHeader('content-length'))
    const chunked = req.getHeader('transfer-encoding') !== ''
    exchange.unreadBody = chunked || exchange.bodyLength > this.#gate.limits.bytes
  }

  #refuseSurplus({ path }: Exchange): void {
    const { maxRequests } = this.#options.policy.options
    if (this.#inFlight.size < maxRequests || WATCHDOG_PATHS.has(path)) return
    throw new ApiError('SERVICE_UNAVAILABLE', 'Too many requests are under way', `limit ${maxRequests}`, { 'Retry-After': '1' })
  }

  /** By its announced length, before a byte of it was read. */
  #refuseLongBody({ bodyLength }: Exchange, { bodyBytes = this.#gate.limits.bytes }: Route): void {
    if (bodyLength > bodyBytes) throw tooLarge(bodyBytes)
  }

  #collect(exchange: Exchange, { bodyBytes = this.#gate.limits.bytes }: Route): BodyCollector | null {
    if (!exchange.unreadBody && exchange.bodyLength === 0) return null
    const body = new BodyCollector(exchange.res, this.#gate, exchange.client.key, bodyBytes, () => {
      exchange.bodyArrived = true
    })
    exchange.onEnd(() => body.cancel())
    return body
  }

  #stream(exchange: Exchange): BodyStream | null {
    if (!exchange.unreadBody && exchange.bodyLength === 0) return null
    // Whatever is answered before the end has come: the rest is not waited for.
    exchange.unreadBody = true
    const body = new BodyStream(exchange.res, this.#gate, exchange.client.key, this.#options.limits.uploadStallMs, () => {
      exchange.bodyArrived = true
    })
    exchange.onEnd(() => body.cancel())
    return body
  }

  #receive(request: Request, caller: Caller | null): Promise<void> | undefined {
    const { body, exchange, contentType, route } = request
    if (route.upload !== undefined) {
      const limit = route.upload.maxBytes()
      const { bodyLength } = exchange
      if (bodyLength > limit + FORM_OVERHEAD) throw tooLarge(limit)
      const stream = body instanceof BodyStream ? body : null
      stream?.admit(this.#uploads)
      const form = new FormBody(stream, contentType, limit, bodyLength > 0 ? bodyLength : null)
      return this.#call(request, caller, form)
    }
    if (body === null || body instanceof BodyStream) return this.#call(request, caller, undefined)
    if (!isJsonType(contentType)) throw new InvalidRequest('content-type', 'The body must be application/json')
    return this.#parse(exchange, body).then((value) => this.#call(request, caller, value))
  }

  async #parse(exchange: Exchange, body: BodyCollector): Promise<unknown> {
    // The rest of one that is too large or too slow is not waited for.
    exchange.unreadBody = true
    const bytes = await body.whole()
    return bytes.length === 0 ? undefined : parseJson(bytes, this.#options.limits.jsonDepth)
  }

  #call(request: Request, caller: Caller | null, value: unknown): Promise<void> | undefined {
    const { exchange, route } = request
    if (exchange.gone) return
    const validator = this.#validator(route)
    const params = validator.params(request.params)
    const query = validator.query(request.query)
    const body = value instanceof FormBody ? value : validator.body(value)
    const input = new Input(params, query, body, caller, exchange)
    const handle = () => route.handler(input as Input & HandlerInput<never, never, never>)
    // Only what changes something needs a name beside it; reading stays free of the cost.
    const changes = caller !== null && route.method !== 'GET'
    const result = changes ? actingAs({ username: caller.username, address: exchange.client.text }, handle) : handle()
    if (result instanceof Promise) return result.then((reply: unknown) => this.#reply(exchange, reply))
    return this.#reply(exchange, result)
  }

  #reply(exchange: Exchange, value: unknown): Promise<void> | undefined {
    if (exchange.gone) return
    return sendReply(exchange, value, this.#options.now(), this.#options.limits, this.#streams)
  }

  #fail(exchange: Exchange, thrown: unknown): void {
    if (exchange.gone) return
    const { log, now } = this.#options
    let error = thrown
    if (!(error instanceof ApiError)) {
      const id = randomUUID()
      log.error({ err: thrown, id, method: exchange.method, path: exchange.path }, 'request failed')
      error = new ApiError('INTERNAL_ERROR', 'The server has failed', id)
    }
    if (exchange.done) exchange.abandon()
    else sendError(exchange, error as ApiError, now())
  }

  #validator(route: Route): Validator {
    let validator = this.#validators.get(route)
    if (validator === undefined) {
      validator = new Validator(route)
      this.#validators.set(route, validator)
    }
    return validator
  }

  readonly #finished = (exchange: Exchange): void => {
    this.#inFlight.delete(exchange)
    if (this.#inFlight.size === 0) this.#whenIdle?.()
  }
}

function authorise(route: Route, caller: Caller | null): void {
  if (route.access === 'public') return
  if (caller === null) throw new InvalidCredentials()
  if (caller.share && (route.share === undefined || (route.share === 'recording') !== (caller.share.kind === 'recording'))) {
    throw new PermissionDenied('This link does not share that')
  }
  if (!roleAllows(caller.role, route.access)) throw new PermissionDenied(route.access)
  if (caller.mustChangePassword && route.beforePasswordChange !== true) {
    throw new ApiError('PASSWORD_CHANGE_REQUIRED', 'The factory password must be changed first', caller.username)
  }
}

function nobody(error: unknown): null {
  if (error instanceof ApiError) return null
  throw error
}
