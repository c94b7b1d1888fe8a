/** Bounds of what one client can make the server hold. */
export interface HttpLimits {
  /** A JSON body. */
  readonly jsonBodyBytes: number
  /** From a request's head to the last byte of its body. */
  readonly bodyDeadlineMs: number
  /** Bodies on their way at the same time, over all clients. */
  readonly bodiesAtOnce: number
  /** The same of one client, so that nobody takes them all. */
  readonly bodiesPerClient: number
  /** Uploads on their way at the same time, over all clients and of one. */
  readonly uploadsAtOnce: number
  readonly uploadsPerClient: number
  /** An upload of which nothing comes for this long is broken off. */
  readonly uploadStallMs: number
  /** Nesting of a JSON body. */
  readonly jsonDepth: number
  /** Answers longer than this are compressed for clients that accept it. */
  readonly compressAbove: number
  /** Files on their way to clients at the same time, over all clients and to one. */
  readonly streamsAtOnce: number
  readonly streamsPerClient: number
  /** A download of which the client takes nothing for this long is broken off. */
  readonly stallMs: number
  /** One of which it takes less than `streamSpanBytes` in this time as well: else a byte now and then would hold its place for ever. */
  readonly streamSpanMs: number
  readonly streamSpanBytes: number
  /** What `stop` grants to answers under way. */
  readonly stopMs: number
  /** Requests under way at the same time. */
  readonly requests: number
  /** WebSocket connections at the same time. */
  readonly sockets: number
  readonly socketsPerClient: number
  readonly socketMessageBytes: number
  /** Bytes that a slow WebSocket client may be behind before it is dropped. */
  readonly socketBackpressureBytes: number
  /** A WebSocket that answers no ping for this long is closed. */
  readonly socketIdleSeconds: number
}

export const DEFAULT_LIMITS: HttpLimits = {
  jsonBodyBytes: 64 * 1024,
  // Before the library cuts a connection that pauses for about 11 s: the client shall hear why.
  bodyDeadlineMs: 9000,
  bodiesAtOnce: 256,
  bodiesPerClient: 32,
  uploadsAtOnce: 8,
  uploadsPerClient: 4,
  uploadStallMs: 9000,
  jsonDepth: 32,
  compressAbove: 4096,
  // Two chunks of memory each.
  streamsAtOnce: 128,
  streamsPerClient: 16,
  stallMs: 60_000,
  streamSpanMs: 60_000,
  streamSpanBytes: 64 * 1024,
  stopMs: 2000,
  requests: 256,
  sockets: 200,
  socketsPerClient: 40,
  socketMessageBytes: 64 * 1024,
  socketBackpressureBytes: 1024 * 1024,
  socketIdleSeconds: 60,
}
