/** A real server on a free port of the loopback, with a small table of routes, and clients that see the bytes. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import pino from 'pino'
import { ApiError, InvalidCredentials } from '../../../app/server/errors.ts'
import {
  type Authenticate,
  BytesReply,
  FileReply,
  HttpServer,
  type HttpServerOptions,
  type Role,
  type Route,
  route,
  StaticAssets,
} from '../../../app/server/http/index.ts'
import type { Scope } from '../../support/scratch.ts'

const shared = { access: 'viewer', rate: 'api', tag: 'test', summary: 'test', response: Type.Unknown() } as const

/** The token is the name of the role; `late-…` is answered a turn later, `fresh` must change its password. */
export const authenticate: Authenticate = ({ authorization, token }) => {
  const given = authorization.startsWith('Bearer ') ? authorization.slice(7) : token
  if (given === '') return null
  const late = given.startsWith('late-')
  const name = late ? given.slice(5) : given
  const caller = () => {
    if (!['guest', 'viewer', 'operator', 'admin', 'fresh'].includes(name)) throw new InvalidCredentials()
    const role: Role = name === 'fresh' ? 'admin' : (name as Role)
    return { username: name, role, via: 'bearer', mustChangePassword: name === 'fresh', cameras: null } as const
  }
  return late ? Promise.resolve().then(caller) : caller()
}

export const log = pino({ level: 'silent' })

/** What the handlers have seen. */
export class Seen {
  aborts = 0
  calls = 0
}

export function table(directory: string, seen: Seen): Route[] {
  return [
    route({ ...shared, method: 'GET', path: '/api/status', handler: () => ({ ok: true }) }),
    route({
      ...shared,
      method: 'GET',
      path: '/api/open',
      access: 'public',
      handler: ({ caller }) => ({ caller: caller?.username ?? null }),
    }),
    route({ ...shared, method: 'GET', path: '/api/admin', access: 'admin', handler: () => ({}) }),
    route({ ...shared, method: 'GET', path: '/api/health', beforePasswordChange: true, handler: () => ({ status: 'healthy' }) }),
    route({
      ...shared,
      method: 'PUT',
      path: '/api/things/{id}',
      params: Type.Object({ id: Type.Integer() }),
      query: Type.Object({ dry: Type.Optional(Type.Boolean()) }),
      body: Type.Object({ fps: Type.Integer({ minimum: 5, maximum: 60 }), note: Type.Optional(Type.String()) }),
      handler: async ({ params, query, body }) => ({ ...params, ...query, ...body }),
    }),
    route({ ...shared, method: 'POST', path: '/api/go', handler: () => ++seen.calls && undefined }),
    route({
      ...shared,
      method: 'GET',
      path: '/api/busy',
      handler: () => {
        throw new ApiError('CAMERA_NOT_CONNECTED', 'No camera', 'camera 0')
      },
    }),
    route({
      ...shared,
      method: 'GET',
      path: '/api/broken',
      handler: async () => {
        throw new Error('secret cause')
      },
    }),
    route({ ...shared, method: 'GET', path: '/api/large', handler: () => ({ text: 'camera '.repeat(5000) }) }),
    route({
      ...shared,
      method: 'GET',
      path: '/api/wait',
      handler: async ({ signal }) => {
        seen.calls++
        if (!signal.aborted) await once(signal, 'abort')
        seen.aborts++
        return {}
      },
    }),
    route({
      ...shared,
      method: 'GET',
      path: '/image',
      rate: 'image',
      response: { binary: 'image/jpeg' },
      handler: () => new BytesReply(Uint8Array.of(0xff, 0xd8, 0xff), 'image/jpeg'),
    }),
    route({
      ...shared,
      method: 'GET',
      path: '/files/{filepath+}',
      rate: 'file',
      params: Type.Object({ filepath: Type.String() }),
      response: { binary: 'application/octet-stream' },
      handler: ({ params }) =>
        new FileReply(join(directory, params.filepath), 'video/mp4', { filename: 'Tür.mp4', attachment: true }),
    }),
  ]
}

export class Client {
  constructor(readonly port: number) {}

  fetch(path: string, init: RequestInit & { as?: string | null } = {}): Promise<Response> {
    const headers = new Headers(init.headers)
    if (init.as !== null) headers.set('authorization', `Bearer ${init.as ?? 'admin'}`)
    return fetch(`http://127.0.0.1:${this.port}${path}`, { redirect: 'manual', ...init, headers })
  }

  /** Status and body. */
  async json(path: string, init: RequestInit & { as?: string | null } = {}) {
    const response = await this.fetch(path, init)
    return { status: response.status, headers: response.headers, body: await response.json() }
  }

  put(path: string, body: string, headers: Record<string, string> = {}, as?: string) {
    const init = { method: 'PUT', body, headers: { 'content-type': 'application/json', ...headers } }
    return this.json(path, as === undefined ? init : { ...init, as })
  }

  async socket(text = ''): Promise<Socket> {
    const socket = connect(this.port, '127.0.0.1')
    await once(socket, 'connect')
    // A reset is one of the ways in which the server may close.
    socket.on('error', () => {})
    if (text !== '') socket.write(text)
    return socket
  }

  /** All bytes until the server closes, or until `enough` matches. */
  async raw(text: string, enough?: RegExp): Promise<string> {
    const socket = await this.socket(text)
    let answer = ''
    await new Promise<void>((resolve) => {
      socket.on('close', () => resolve())
      socket.on('data', (data) => {
        answer += data.toString('latin1')
        if (enough?.test(answer) || isLast(answer)) socket.destroy()
      })
    })
    return answer
  }
}

/** A whole answer after which the connection is not used any more. */
export function isLast(answer: string): boolean {
  const body = answer.indexOf('\r\n\r\n') + 4
  const length = /^Connection: close\r\n[\s\S]*^Content-Length: (\d+)\r$/m.exec(answer.slice(0, body))?.[1]
  return length !== undefined && answer.length >= body + Number(length)
}

export async function serve(t: Scope, options: Partial<HttpServerOptions> & { directory?: string; seen?: Seen } = {}) {
  const { directory = '/nonexistent', seen = new Seen(), ...rest } = options
  const server = new HttpServer({
    listeners: [{ name: 'http', address: '127.0.0.1', port: 0 }],
    routes: table(directory, seen),
    authenticate,
    log,
    assets: new StaticAssets(),
    version: '1.0.0',
    rateLimits: () => 'off',
    ...rest,
  })
  const ports = await server.start()
  t.teardown(() => server.stop())
  return { server, ports, seen, client: new Client(ports.http ?? 0) }
}

/** Waits for a condition by looking again, not by a guess of how long it takes. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve))
}
