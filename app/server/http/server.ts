/** The HTTP server: listeners, routes, WebSocket and console behind one start and stop. */
import type { Logger } from 'pino'
import type { StaticAssets } from './assets.ts'
import { docsAssets } from './docs/assets.ts'
import type { Exchange } from './exchange.ts'
import { DEFAULT_LIMITS, type HttpLimits } from './limits.ts'
import { BoundApp, type ListenerOptions, type TlsFiles } from './listen.ts'
import { openApiRoute } from './openapi-route.ts'
import { Pipeline } from './pipeline.ts'
import { Policy, type PolicyOptions } from './policy.ts'
import { RateLimiter, type RateLimitMode } from './rate-limit.ts'
import type { Authenticate, Route } from './route.ts'
import { type WebSocketBehaviour, WebSockets } from './websocket.ts'

const USUAL_HTTPS_PORT = 443
const BASIC_ONLY = ['Basic realm="camera", charset="UTF-8"']

export interface HttpServerOptions {
  readonly listeners: readonly ListenerOptions[]
  readonly routes: readonly Route[]
  readonly authenticate: Authenticate
  readonly log: Logger
  readonly assets: StaticAssets
  readonly version: string
  readonly limits?: Partial<HttpLimits>
  /** `configure` changes it later. */
  readonly policy?: Partial<PolicyOptions>
  /** Asked for every request, so that a change of the settings acts at once. */
  readonly rateLimits?: () => RateLimitMode
  /** What a 401 offers, the strongest first. */
  readonly challenges?: () => readonly string[]
  readonly websocket?: { readonly path: string; readonly behaviour: WebSocketBehaviour<unknown> }
  /** Epoch ms. */
  readonly now?: () => number
}

/** The real ports by the listener's name; of several of a name, the first. */
export type Ports = Partial<Record<ListenerOptions['name'], number>>

export class HttpServer {
  readonly #options: HttpServerOptions
  readonly #policy = new Policy()
  #apps: BoundApp[] = []
  #pipeline: Pipeline | null = null
  #sockets: WebSockets | null = null

  constructor(options: HttpServerOptions) {
    this.#options = options
    const { requests, sockets } = { ...DEFAULT_LIMITS, ...options.limits }
    this.#policy.change({ maxRequests: requests, maxWebSockets: sockets, ...options.policy })
  }

  /** For the requests from now on. Throws for a proxy range that is none, and has changed nothing then. */
  configure(change: Partial<PolicyOptions>): void {
    this.#policy.change(change)
  }

  /** Requests under way and open WebSockets. */
  get load(): { requests: number; sockets: number } {
    return { requests: this.#pipeline?.inFlight ?? 0, sockets: this.#sockets?.size ?? 0 }
  }

  /** The real ports of all listeners of this name, in order. */
  ports(name: ListenerOptions['name']): number[] {
    return this.#apps.filter((app) => app.name === name).map(({ port }) => port)
  }

  /** Throws a `StartupError` where a listener cannot be had; then none is left open. */
  async start(): Promise<Ports> {
    const { listeners, websocket } = this.#options
    const limits = { ...DEFAULT_LIMITS, ...this.#options.limits }
    const now = this.#options.now ?? Date.now
    const pipeline = this.#newPipeline(limits, now)
    const sockets = websocket === undefined ? null : this.#newSockets(websocket.behaviour, pipeline, limits, now)
    this.#pipeline = pipeline
    this.#sockets = sockets

    const ports: Ports = {}
    try {
      const challenges = this.#options.challenges ?? (() => BASIC_ONLY)
      for (const options of listeners) {
        const listener = { name: options.name, secure: options.tls !== undefined, policy: this.#policy, challenges }
        const app = await BoundApp.listen(options, (uws) => {
          if (websocket !== undefined && sockets !== null) uws.ws(websocket.path, sockets.handlers(listener))
          uws.any('/*', (res, req) => pipeline.handle(res, req, listener))
        })
        this.#apps.push(app)
        ports[options.name] ??= app.port
      }
    } catch (error) {
      await this.stop()
      throw error
    }
    return ports
  }

  /** New connections get this certificate; those that are open stay. Rejects where it cannot be used, and goes on with the one before. */
  async replaceCertificate(tls: TlsFiles): Promise<void> {
    for (const app of this.#apps) if (app.secure) await app.replaceCertificate(tls)
  }

  /** Takes no more connections, grants the answers under way a bounded time, then breaks what is left. */
  async stop(): Promise<void> {
    const apps = this.#apps
    this.#apps = []
    for (const app of apps) app.stopListening()
    this.#sockets?.closeAll()
    await this.#pipeline?.drain(this.#options.limits?.stopMs ?? DEFAULT_LIMITS.stopMs)
    for (const app of apps) app.close()
  }

  /** Where clients are sent to: the usual port where it is served, else the first one. */
  #securePort(): number | null {
    const ports = this.ports('https')
    return ports.includes(USUAL_HTTPS_PORT) ? USUAL_HTTPS_PORT : (ports[0] ?? null)
  }

  #newSockets(behaviour: WebSocketBehaviour<unknown>, pipeline: Pipeline, limits: HttpLimits, now: () => number): WebSockets {
    const guard = (exchange: Exchange) => pipeline.redirected(exchange) || pipeline.limited(exchange, 'api')
    return new WebSockets(behaviour, limits, this.#options.log, now, guard, () => this.#policy.options.maxWebSockets)
  }

  #newPipeline(limits: HttpLimits, now: () => number): Pipeline {
    const { routes, authenticate, log, rateLimits, websocket, version } = this.#options
    const assets = this.#options.assets.with(docsAssets())
    return new Pipeline({
      routes: [...routes, openApiRoute(routes, { version })],
      authenticate,
      log,
      limits,
      policy: this.#policy,
      rateLimiter: new RateLimiter(rateLimits ?? (() => 'device'), now),
      assets,
      websocketPath: websocket?.path ?? null,
      redirectPort: () => (this.#policy.options.redirectToHttps ? this.#securePort() : null),
      now,
    })
  }
}
