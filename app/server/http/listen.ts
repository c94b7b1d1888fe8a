/** Listening sockets of uWS, and how the certificate behind one is replaced while it is in use. */
import uWS, { type TemplatedApp, type us_listen_socket } from 'uWebSockets.js'
import { StartupError } from '../errors.ts'
import { untilQuiet } from './quiet.ts'

export interface TlsFiles {
  readonly keyFile: string
  readonly certFile: string
}

export interface ListenerOptions {
  readonly name: 'http' | 'https' | 'dashboard'
  readonly address: string
  /** 0: a free one. */
  readonly port: number
  readonly tls?: TlsFiles
}

/** Options of uWS's `listen`. */
const SHARED = 0
/** Without it uWS shares a port that somebody else serves already, and each gets some of the connections. */
const EXCLUSIVE = 1

const FIRST_UNPRIVILEGED_PORT = 1024

/** Of the suites of TLS 1.2, those with forward secrecy and authenticated encryption. TLS 1.3 has no others; older ones are refused. */
const CIPHERS = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':')

/** Certificates whose last connections may go on; with one more, those of the oldest are broken. */
const MAX_RETIRED = 4

/** The form with both an address and options is left out of the type declarations. */
interface ListenWithOptions {
  listen(address: string, port: number, options: number, done: (socket: us_listen_socket | false) => void): void
}
/** So is this: `silent` drops the header that names the library. */
;(uWS as unknown as { _cfg: (option: string) => void })._cfg('silent')

interface Bound {
  readonly app: TemplatedApp
  readonly socket: us_listen_socket
}

export class BoundApp {
  readonly port: number
  readonly #options: ListenerOptions
  readonly #register: (app: TemplatedApp) => void
  #current: Bound
  #listening = true
  /** No longer listening, but with connections perhaps. */
  readonly #retired: TemplatedApp[] = []

  private constructor(options: ListenerOptions, register: (app: TemplatedApp) => void, current: Bound) {
    this.#options = options
    this.#register = register
    this.#current = current
    this.port = uWS.us_socket_local_port(current.socket)
  }

  /** `register` puts the handlers on the app before it listens. */
  static async listen(options: ListenerOptions, register: (app: TemplatedApp) => void): Promise<BoundApp> {
    const { name, address, port, tls } = options
    const app = newApp(name, tls)
    register(app)
    let socket = await listenOn(app, address, port, EXCLUSIVE)
    if (socket !== null && tls !== undefined) {
      // The port is ours alone. A later certificate must be able to listen beside this one, so it is taken again in the other way.
      const own = uWS.us_socket_local_port(socket)
      uWS.us_listen_socket_close(socket)
      socket = await listenOn(app, address, own, SHARED)
    }
    if (socket === null) {
      app.close()
      const rights = port > 0 && port < FIRST_UNPRIVILEGED_PORT ? ', or this process may not bind ports below 1024' : ''
      throw new StartupError(
        `Cannot listen on ${address}:${port} (${name}): the port is taken or the address is not of this machine${rights}`,
      )
    }
    return new BoundApp(options, register, { app, socket })
  }

  get name(): ListenerOptions['name'] {
    return this.#options.name
  }

  get secure(): boolean {
    return this.#options.tls !== undefined
  }

  /**
   * uWS cannot change the certificate of an app, so a second app takes over: it listens beside the first, which then stops listening in
   * a moment in which no connection is about to be taken, and keeps the connections that it has.
   */
  async replaceCertificate(tls: TlsFiles): Promise<void> {
    const { name, address } = this.#options
    const app = newApp(name, tls)
    this.#register(app)
    const socket = await listenOn(app, address, this.port, SHARED)
    if (socket === null || !this.#listening) {
      app.close()
      throw new Error(`Cannot listen on ${address}:${this.port} once more`)
    }
    const before = this.#current
    this.#current = { app, socket }
    this.#retired.push(before.app)
    await untilQuiet(this.port)
    if (this.#listening) uWS.us_listen_socket_close(before.socket)
    if (this.#retired.length > MAX_RETIRED) this.#retired.shift()?.close()
  }

  stopListening(): void {
    this.#listening = false
    uWS.us_listen_socket_close(this.#current.socket)
  }

  /** Breaks what is still connected. */
  close(): void {
    for (const app of this.#retired.splice(0)) app.close()
    this.#current.app.close()
  }
}

function listenOn(app: TemplatedApp, address: string, port: number, options: number): Promise<us_listen_socket | null> {
  return new Promise((resolve) => {
    ;(app as unknown as ListenWithOptions).listen(address, port, options, (socket) => resolve(socket === false ? null : socket))
  })
}

function newApp(name: string, tls: TlsFiles | undefined): TemplatedApp {
  if (tls === undefined) return uWS.App()
  try {
    return uWS.SSLApp({ key_file_name: tls.keyFile, cert_file_name: tls.certFile, ssl_ciphers: CIPHERS })
  } catch {
    throw new StartupError(`Cannot use the certificate ${tls.certFile} with the key ${tls.keyFile} (${name})`)
  }
}
