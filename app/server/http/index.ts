/** The HTTP layer: what other folders may import. */
export { StaticAssets } from './assets.ts'
export { DEFAULT_LIMITS, type HttpLimits } from './limits.ts'
export type { ListenerOptions } from './listen.ts'
export { openApiDocument } from './openapi.ts'
export type { RateLimitMode } from './rate-limit.ts'
export * from './route.ts'
export { HttpServer, type HttpServerOptions, type Ports } from './server.ts'
export type { Peer, WebSocketBehaviour } from './websocket.ts'
