/** One listening socket of uWS. */
import uWS, { type TemplatedApp, type us_listen_socket } from 'uWebSockets.js'
import { StartupError } from '../errors.ts'

export interface ListenerOptions {
  readonly name: 'http' | 'https' | 'dashboard'
  readonly address: string
  /** 0: a free one. */
  readonly port: number
  readonly tls?: { readonly keyFile: string; readonly certFile: string }
}

/** Without it uWS shares a port that somebody else serves already, and each gets some of the connections. */
const EXCLUSIVE = 1

/** The form with both an address and options is left out of the type declarations. */
interface ExclusiveListen {
  listen(address: string, port: number, options: number, done: (socket: us_listen_socket | false) => void): void
}
/** So is this: `silent` drops the header that names the library. */
;(uWS as unknown as { _cfg: (option: string) => void })._cfg('silent')

export class BoundApp {
  readonly port: number
  readonly #app: TemplatedApp
  readonly #socket: us_listen_socket

  private constructor(app: TemplatedApp, socket: us_listen_socket) {
    this.#app = app
    this.#socket = socket
    this.port = uWS.us_socket_local_port(socket)
  }

  /** `register` puts the handlers on the app before it listens. */
  static async listen(options: ListenerOptions, register: (app: TemplatedApp) => void): Promise<BoundApp> {
    const { name, address, port, tls } = options
    const app = newApp(name, tls)
    register(app)
    const socket = await new Promise<us_listen_socket | false>((resolve) => {
      ;(app as unknown as ExclusiveListen).listen(address, port, EXCLUSIVE, resolve)
    })
    if (socket === false) {
      app.close()
      throw new StartupError(
        `Cannot listen on ${address}:${port} (${name}): the port is taken or the address is not of this machine`,
      )
    }
    return new BoundApp(app, socket)
  }

  stopListening(): void {
    uWS.us_listen_socket_close(this.#socket)
  }

  /** Breaks what is still connected. */
  close(): void {
    this.#app.close()
  }
}

function newApp(name: string, tls: ListenerOptions['tls']): TemplatedApp {
  if (tls === undefined) return uWS.App()
  try {
    return uWS.SSLApp({ key_file_name: tls.keyFile, cert_file_name: tls.certFile })
  } catch {
    throw new StartupError(`Cannot use the certificate ${tls.certFile} with the key ${tls.keyFile} (${name})`)
  }
}
