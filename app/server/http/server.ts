/** The HTTP server: listeners, routes, WebSocket and console behind one start and stop. */
import type { Logger } from 'pino'
import type { StaticAssets } from './assets.ts'
import { Cors } from './cors.ts'
import { docsAssets } from './docs/assets.ts'
import { DEFAULT_LIMITS, type HttpLimits } from './limits.ts'
import { BoundApp, type ListenerOptions } from './listen.ts'
import { openApiRoute } from './openapi-route.ts'
import { Pipeline } from './pipeline.ts'
import { RateLimiter, type RateLimitMode } from './rate-limit.ts'
import type { Authenticate, Route } from './route.ts'
import { type WebSocketBehaviour, WebSockets } from './websocket.ts'

export interface HttpServerOptions {
  readonly listeners: readonly ListenerOptions[]
  readonly routes: readonly Route[]
  readonly authenticate: Authenticate
  readonly log: Logger
  readonly assets: StaticAssets
  readonly version: string
  readonly limits?: Partial<HttpLimits>
  readonly cors?: { readonly origins: readonly string[] }
  /** Asked for every request, so that a change of the settings acts at once. */
  readonly rateLimits?: () => RateLimitMode
  readonly websocket?: { readonly path: string; readonly behaviour: WebSocketBehaviour<unknown> }
  /** Epoch ms. */
  readonly now?: () => number
}

/** The real ports by the listener's name. */
export type Ports = Partial<Record<ListenerOptions['name'], number>>

export class HttpServer {
  readonly #options: HttpServerOptions
  #apps: BoundApp[] = []
  #pipeline: Pipeline | null = null
  #sockets: WebSockets | null = null

  constructor(options: HttpServerOptions) {
    this.#options = options
  }

  /** Requests under way and open WebSockets. */
  get load(): { requests: number; sockets: number } {
    return { requests: this.#pipeline?.inFlight ?? 0, sockets: this.#sockets?.size ?? 0 }
  }

  /** Throws a `StartupError` where a listener cannot be had; then none is left open. */
  async start(): Promise<Ports> {
    const { listeners, websocket } = this.#options
    const limits = { ...DEFAULT_LIMITS, ...this.#options.limits }
    const now = this.#options.now ?? Date.now
    const pipeline = await this.#newPipeline(limits, now)
    const sockets = websocket === undefined ? null : new WebSockets(websocket.behaviour, limits, this.#options.log, now)
    this.#pipeline = pipeline
    this.#sockets = sockets

    const ports: Ports = {}
    try {
      for (const options of listeners) {
        const listener = { name: options.name, secure: options.tls !== undefined }
        const app = await BoundApp.listen(options, (uws) => {
          if (websocket !== undefined && sockets !== null) uws.ws(websocket.path, sockets.handlers(listener))
          uws.any('/*', (res, req) => pipeline.handle(res, req, listener))
        })
        this.#apps.push(app)
        ports[options.name] = app.port
      }
    } catch (error) {
      await this.stop()
      throw error
    }
    return ports
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

  async #newPipeline(limits: HttpLimits, now: () => number): Promise<Pipeline> {
    const { routes, authenticate, log, cors, rateLimits, websocket, version } = this.#options
    const assets = this.#options.assets.with(docsAssets())
    await assets.start()
    return new Pipeline({
      routes: [...routes, openApiRoute(routes, { version })],
      authenticate,
      log,
      limits,
      cors: new Cors(cors?.origins ?? []),
      rateLimiter: new RateLimiter(rateLimits ?? (() => 'device'), now),
      assets,
      websocketPath: websocket?.path ?? null,
      now,
    })
  }
}
