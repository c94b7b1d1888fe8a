/** Gives WebSocket connections to whoever serves them, within limits, and without showing the library. */

import type { HttpRequest, HttpResponse, us_socket_context_t, WebSocket, WebSocketBehavior } from 'uWebSockets.js'
import type { Logger } from 'pino'
import { ApiError } from '../errors.ts'
import { Exchange, type Listener } from './exchange.ts'
import type { HttpLimits } from './limits.ts'
import { sendError } from './reply.ts'
import type { CredentialSource } from './route.ts'
import { parseQuery } from './target.ts'

/** One connection. Calls after its end do nothing. */
export interface Peer<D> {
  /** What `onUpgrade` has returned. */
  readonly data: D
  readonly address: string
  readonly open: boolean
  /** Bytes that the client has not taken yet. */
  readonly buffered: number
  /** False when the client is too slow and is being dropped. */
  send(message: string | Uint8Array): boolean
  end(code: number, reason: string): void
}

/** Methods, so that a behaviour of known data fits where the data do not matter. */
export interface WebSocketBehaviour<D> {
  /** Before the connection exists. An `ApiError` refuses it with its HTTP answer. */
  onUpgrade(source: CredentialSource): D | Promise<D>
  open(peer: Peer<D>): void
  /** Binary messages are refused before they come here. */
  message(peer: Peer<D>, text: string): void
  drain?(peer: Peer<D>): void
  /** The peer is closed already. */
  close(peer: Peer<D>, code: number, reason: string): void
}

interface UserData {
  readonly data: unknown
  readonly address: string
  readonly client: string
  peer: UwsPeer | null
}

/** What an upgrade must pass before anybody looks at its credentials. True: it has been answered. */
export type UpgradeGuard = (exchange: Exchange) => boolean

export class WebSockets {
  readonly #peers = new Set<UwsPeer>()
  #count = 0
  /** Connections by client, so that nobody takes them all. */
  readonly #clients = new Map<string, number>()

  constructor(
    readonly behaviour: WebSocketBehaviour<unknown>,
    readonly limits: HttpLimits,
    readonly log: Logger,
    readonly now: () => number,
    readonly guard: UpgradeGuard = () => false,
    readonly maxSockets: () => number = () => limits.sockets,
  ) {}

  get size(): number {
    return this.#peers.size
  }

  /** What uWS wants for one listener. */
  handlers(listener: Listener): WebSocketBehavior<UserData> {
    return {
      maxPayloadLength: this.limits.socketMessageBytes,
      maxBackpressure: this.limits.socketBackpressureBytes,
      closeOnBackpressureLimit: 1,
      idleTimeout: this.limits.socketIdleSeconds,
      sendPingsAutomatically: true,
      upgrade: (res, req, context) => this.#upgrade(res, req, context, listener),
      open: (ws) => this.#open(ws),
      message: (ws, message, isBinary) => this.#message(ws, message, isBinary),
      drain: (ws) => this.#with(ws, (peer) => this.behaviour.drain?.(peer)),
      close: (ws, code, message) => this.#close(ws, code, message),
    }
  }

  closeAll(): void {
    for (const peer of this.#peers) peer.end(1001, 'The server stops')
  }

  #upgrade(res: HttpResponse, req: HttpRequest, context: us_socket_context_t, listener: Listener): void {
    const exchange = new Exchange(res, req, listener, () => {})
    const key = req.getHeader('sec-websocket-key')
    const protocol = req.getHeader('sec-websocket-protocol')
    const extensions = req.getHeader('sec-websocket-extensions')
    const accept = (data: unknown) => {
      if (exchange.gone) return
      exchange.done = true
      this.#counted(exchange.client.key, 1)
      // Not within `cork`: when the upgraded socket happens to keep its address, uWS takes it for a finished HTTP answer afterwards and
      // closes it.
      res.upgrade<UserData>(
        { data, address: exchange.client.text, client: exchange.client.key, peer: null },
        key,
        protocol,
        extensions,
        context,
      )
    }
    const refuse = (error: unknown) => {
      if (!(error instanceof ApiError)) this.log.error({ err: error }, 'upgrade failed')
      sendError(exchange, error instanceof ApiError ? error : new ApiError('INTERNAL_ERROR', 'The server has failed'), this.now())
    }
    try {
      if (this.guard(exchange)) return
      const own = this.#clients.get(exchange.client.key) ?? 0
      if (this.#count >= this.maxSockets() || own >= this.limits.socketsPerClient) {
        throw new ApiError('SERVICE_UNAVAILABLE', 'Too many connections', `limit ${this.maxSockets()}`)
      }
      const token = parseQuery(exchange.rawQuery).get('token') ?? ''
      const data = this.behaviour.onUpgrade(exchange.credentials(token))
      if (data instanceof Promise) void data.then(accept).catch(refuse)
      else accept(data)
    } catch (error) {
      refuse(error)
    }
    if (!exchange.done) exchange.detach()
  }

  #counted(client: string, change: 1 | -1): void {
    this.#count += change
    const own = (this.#clients.get(client) ?? 0) + change
    if (own > 0) this.#clients.set(client, own)
    else this.#clients.delete(client)
  }

  #open(ws: WebSocket<UserData>): void {
    const user = ws.getUserData()
    const peer = new UwsPeer(ws, user.data, user.address)
    user.peer = peer
    this.#peers.add(peer)
    this.#with(ws, () => this.behaviour.open(peer))
  }

  #message(ws: WebSocket<UserData>, message: ArrayBuffer, isBinary: boolean): void {
    this.#with(ws, (peer) => {
      if (isBinary) peer.end(1003, 'Text messages only')
      else this.behaviour.message(peer, Buffer.from(message).toString('utf8'))
    })
  }

  #close(ws: WebSocket<UserData>, code: number, message: ArrayBuffer): void {
    const { peer, client } = ws.getUserData()
    this.#counted(client, -1)
    if (peer === null) return
    peer.open = false
    this.#peers.delete(peer)
    this.#guard(() => this.behaviour.close(peer, code, Buffer.from(message).toString('utf8')))
  }

  #with(ws: WebSocket<UserData>, action: (peer: UwsPeer) => void): void {
    const { peer } = ws.getUserData()
    if (peer?.open) this.#guard(() => action(peer))
  }

  /** An exception that leaves a callback of uWS ends the process. */
  #guard(action: () => void): void {
    try {
      action()
    } catch (error) {
      this.log.error({ err: error }, 'WebSocket handler failed')
    }
  }
}

class UwsPeer implements Peer<unknown> {
  open = true
  readonly #ws: WebSocket<UserData>

  constructor(
    ws: WebSocket<UserData>,
    readonly data: unknown,
    readonly address: string,
  ) {
    this.#ws = ws
  }

  get buffered(): number {
    return this.open ? this.#ws.getBufferedAmount() : 0
  }

  send(message: string | Uint8Array): boolean {
    return this.open && this.#ws.send(message, typeof message !== 'string') !== 2
  }

  end(code: number, reason: string): void {
    if (this.open) this.#ws.end(code, reason)
  }
}
