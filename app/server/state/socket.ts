/**
 * The WebSocket at `/api/v1`: JSON objects of state keys set them, `get` reads, `subscribe` and `unsubscribe` choose events, `auth` identifies a
 * connection that came without credentials. Errors are answered and the connection stays open.
 */
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { actingAs } from '../actor.ts'
import { sameOrigin } from '../auth/index.ts'
import { type Bus, EVENT_CATEGORIES, type EventCategory, type ServerEvent } from '../bus.ts'
import { type Caller, type CredentialSource, type Role, seesCamera } from '../caller.ts'
import type { Component } from '../component.ts'
import { ApiError, errorText, InvalidCredentials, InvalidRequest, PermissionDenied } from '../errors.ts'
import type { Peer, WebSocketBehaviour } from '../http/index.ts'
import { seesJob } from '../jobs/index.ts'
import type { Logger } from '../log.ts'
import type { State } from './state.ts'

const AUTH_TIMEOUT_MS = 5000
const MESSAGES_PER_SECOND = 100
/** Beyond this many a second the client is no client but a flood. */
const FLOOD_PER_SECOND = 1000
const MAX_PENDING_WRITES = 32
const POLICY_VIOLATION = 1008
/** What a timer can take. */
const MAX_TIMER_MS = 2 ** 31 - 1

const Categories = Type.Array(Type.Union(EVENT_CATEGORIES.map((name) => Type.Literal(name))), { maxItems: 16 })
const Commands = {
  auth: Type.Object({ token: Type.String({ maxLength: 4096 }) }, { additionalProperties: false }),
  get: Type.Array(Type.String({ maxLength: 64 }), { maxItems: 100 }),
  subscribe: Categories,
  unsubscribe: Categories,
}

/** What the socket needs to know of authentication. */
export interface SocketAuth {
  authenticate(source: CredentialSource): Caller | null | Promise<Caller | null>
  byBearer(token: string): Promise<Caller>
  refuseForeignPage(source: CredentialSource): void
}

class Client {
  caller: Caller | null
  readonly subscriptions = new Set<EventCategory>()
  /** Ends the connection: no credentials in time, or the session's end. */
  timer: NodeJS.Timeout | undefined
  /** What came behind an `auth` waits for its outcome. */
  identified: Promise<void> = Promise.resolve()
  /** Set messages act in the order in which they came. */
  writes: Promise<void> = Promise.resolve()
  pendingWrites = 0
  private second = 0
  private count = 0

  constructor(caller: Caller | null) {
    this.caller = caller
  }

  /** Messages in the current second, this one included. */
  countMessage(now: number): number {
    const second = Math.floor(now / 1000)
    if (second !== this.second) {
      this.second = second
      this.count = 0
    }
    this.count += 1
    return this.count
  }
}

export class StateSocket implements Component, WebSocketBehaviour<Client> {
  private readonly peers = new Set<Peer<Client>>()
  private readonly onState = ({ key, value }: { key: string; value: unknown }) => this.broadcast(key, value)
  private readonly onEvent = (event: ServerEvent) => this.deliver(event)
  private readonly onSessionEnded = ({ sessionId }: { sessionId: string }) =>
    this.drop((caller) => caller.sessionId === sessionId, 'The session has ended')
  /** Sockets opened with Basic or Digest belong to no session. */
  private readonly onUserChanged = ({ username, keep }: { username: string; keep?: string }) =>
    this.drop(
      (caller) => caller.username === username && (keep === undefined || caller.sessionId !== keep),
      'The account was changed',
    )

  constructor(
    private readonly state: State,
    private readonly auth: SocketAuth,
    private readonly bus: Bus,
    private readonly log: Logger,
    private readonly now: () => number = Date.now,
  ) {}

  start(): void {
    this.bus.on('state', this.onState).on('event', this.onEvent).on('session-ended', this.onSessionEnded)
    this.bus.on('user-changed', this.onUserChanged)
  }

  stop(): void {
    this.bus.off('state', this.onState).off('event', this.onEvent).off('session-ended', this.onSessionEnded)
    this.bus.off('user-changed', this.onUserChanged)
    for (const peer of this.peers) clearTimeout(peer.data.timer)
  }

  async onUpgrade(source: CredentialSource): Promise<Client> {
    const caller = await this.auth.authenticate(source)
    // Browsers let any page open a WebSocket, and send the cookie along.
    if (caller?.via === 'cookie' && !sameOrigin(source.origin, source.host)) {
      throw new PermissionDenied('a session cookie is only accepted from the same origin')
    }
    if (caller?.via === 'basic' || caller?.via === 'digest') this.auth.refuseForeignPage(source)
    if (caller) checkCaller(caller)
    return new Client(caller)
  }

  open(peer: Peer<Client>): void {
    this.peers.add(peer)
    if (peer.data.caller) {
      this.greet(peer)
    } else {
      peer.data.timer = setTimeout(() => peer.end(POLICY_VIOLATION, 'No credentials within 5 seconds'), AUTH_TIMEOUT_MS)
    }
  }

  message(peer: Peer<Client>, text: string): void {
    const count = peer.data.countMessage(this.now())
    if (count > FLOOD_PER_SECOND) {
      peer.end(POLICY_VIOLATION, 'Too many messages')
    } else if (count > MESSAGES_PER_SECOND) {
      if (count === MESSAGES_PER_SECOND + 1)
        this.fail(peer, new ApiError('RATE_LIMITED', 'At most 100 messages a second', '100/s'))
    } else {
      this.handle(peer, text).catch((error) => this.fail(peer, error))
    }
  }

  close(peer: Peer<Client>): void {
    this.peers.delete(peer)
    clearTimeout(peer.data.timer)
  }

  private async handle(peer: Peer<Client>, text: string): Promise<void> {
    const message = parse(text)
    if ('auth' in message) {
      const { token } = command(message, 'auth')
      const { identified } = peer.data
      peer.data.identified = identified.then(() => this.identify(peer, token))
      return
    }
    await peer.data.identified
    const { caller } = peer.data
    if (!caller) throw new InvalidCredentials('The first message must be {"auth": {"token": …}}')
    if ('get' in message) this.answer(peer, command(message, 'get'), caller)
    else if ('subscribe' in message) for (const name of command(message, 'subscribe')) peer.data.subscriptions.add(name)
    else if ('unsubscribe' in message) for (const name of command(message, 'unsubscribe')) peer.data.subscriptions.delete(name)
    else await this.write(peer, message, caller)
  }

  /** One write after the other, and no more waiting than fit. */
  private async write(peer: Peer<Client>, batch: Record<string, unknown>, caller: Caller): Promise<void> {
    const client = peer.data
    if (client.pendingWrites >= MAX_PENDING_WRITES)
      throw new ApiError('RATE_LIMITED', 'Too many changes are waiting', `${MAX_PENDING_WRITES}`)
    client.pendingWrites += 1
    const turn = client.writes
      .then(() => actingAs({ username: caller.username, address: peer.address }, () => this.state.write(batch, caller)))
      .finally(() => {
        client.pendingWrites -= 1
      })
    client.writes = turn.catch(() => undefined)
    await turn
  }

  private async identify(peer: Peer<Client>, token: string): Promise<void> {
    try {
      const caller = await this.auth.byBearer(token)
      checkCaller(caller)
      peer.data.caller = caller
    } catch (error) {
      this.fail(peer, error)
      if (!peer.data.caller) peer.end(POLICY_VIOLATION, 'The token was refused')
      return
    }
    this.greet(peer)
  }

  private greet(peer: Peer<Client>): void {
    const { caller } = peer.data
    if (!caller) return
    clearTimeout(peer.data.timer)
    if (caller.expiresAt !== undefined) {
      const left = Math.min(Math.max(caller.expiresAt - this.now(), 0), MAX_TIMER_MS)
      peer.data.timer = setTimeout(() => peer.end(POLICY_VIOLATION, 'The session has expired'), left)
    }
    send(peer, this.state.readAll(caller))
  }

  private answer(peer: Peer<Client>, names: readonly string[], caller: Caller): void {
    send(peer, this.state.read(names, caller))
  }

  private broadcast(key: string, value: unknown): void {
    const text = JSON.stringify({ [key]: value })
    for (const peer of this.peers) {
      const { caller } = peer.data
      if (caller && this.state.mayRead(key, caller)) peer.send(text)
    }
  }

  private deliver({ actor: _actor, ...event }: ServerEvent): void {
    const text = JSON.stringify({ event })
    for (const peer of this.peers) {
      const { caller, subscriptions } = peer.data
      if (caller && mayHear(caller, event) && subscriptions.has(event.category)) peer.send(text)
    }
  }

  private drop(gone: (caller: Caller) => boolean, reason: string): void {
    for (const peer of [...this.peers]) if (peer.data.caller && gone(peer.data.caller)) peer.end(POLICY_VIOLATION, reason)
  }

  private fail(peer: Peer<Client>, error: unknown): void {
    if (!(error instanceof ApiError)) this.log.error({ error: errorText(error) }, 'message failed')
    const shown = error instanceof ApiError ? error : new ApiError('INTERNAL_ERROR', 'The server has failed')
    const { code, message, details } = shown
    send(peer, { error: { code, message, details, timestamp: new Date(this.now()).toISOString() } })
  }
}

/** Who logs in from where is the admins' business, as are the network and updates, and a camera's events that of those who may see it. */
function mayHear(caller: Caller, { category, type, data }: ServerEvent): boolean {
  if (category === 'auth' || (category === 'config' && /^(network|updates?)_/.test(type))) return caller.role === 'admin'
  if (category === 'job') return seesJob(caller, data as { role: Role; username: string | null })
  return typeof data.camera !== 'number' || seesCamera(caller, data.camera)
}

function checkCaller(caller: Caller): void {
  if (caller.share) throw new PermissionDenied('a share link opens no WebSocket')
  if (caller.mustChangePassword) throw new ApiError('PASSWORD_CHANGE_REQUIRED', 'Change the factory password first')
  if (caller.role === 'guest') throw new PermissionDenied('viewer')
}

function send(peer: Peer<Client>, value: unknown): void {
  peer.send(JSON.stringify(value))
}

function parse(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new InvalidRequest('message', 'The message is not valid JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new InvalidRequest('message', 'The message must be an object')
  return value as Record<string, unknown>
}

/** A command stands alone in its message. */
function command<K extends keyof typeof Commands>(message: Record<string, unknown>, name: K): Static<(typeof Commands)[K]> {
  const surplus = Object.keys(message).find((key) => key !== name)
  if (surplus !== undefined) throw new InvalidRequest(surplus, `${name} cannot be sent together with other keys`)
  const value = message[name]
  const schema = Commands[name]
  if (!Value.Check(schema, value)) {
    const error = Value.Errors(schema, value).First()
    throw new InvalidRequest(`${name}${error?.path.replaceAll('/', '.') ?? ''}`, error?.message ?? 'invalid value')
  }
  return value as Static<(typeof Commands)[K]>
}
