/** Where the server listens: as the options say, and as it has become. */
import type { Options } from './cli.ts'
import type { HttpServer, HttpServerOptions } from './http/index.ts'
import type { MediaSupervisor } from './media/index.ts'
import type { Certificates } from './tls/index.ts'

/** Told in the line that says that the server is ready. */
export interface ReadyPorts {
  readonly http: number
  readonly https: number
  readonly rtsp: number
  readonly rtsps: number
  readonly dashboard: number
  /** Those of `--extra-http-port` and `--extra-https-port`, where there are any. */
  readonly extra_http?: readonly number[]
  readonly extra_https?: readonly number[]
}

export function listenersOf(options: Options, tls: Certificates['files']): HttpServerOptions['listeners'] {
  const listener = { address: options.bind }
  return [
    { name: 'http', port: options.httpPort, ...listener },
    { name: 'https', port: options.httpsPort, tls, ...listener },
    { name: 'dashboard', port: options.dashboardPort, ...listener },
    ...options.extraHttpPorts.map((port) => ({ name: 'http', port, ...listener }) as const),
    ...options.extraHttpsPorts.map((port) => ({ name: 'https', port, tls, ...listener }) as const),
  ]
}

/** Those in use; also before the server listens. */
export function portsOf(http: HttpServer) {
  return { http: http.ports('http'), https: http.ports('https'), dashboard: http.ports('dashboard') }
}

export function readyPorts(server: HttpServer, { rtspPorts }: Pick<MediaSupervisor, 'rtspPorts'>): ReadyPorts {
  const { http, https, dashboard } = portsOf(server)
  const [plain = 0, ...extraHttp] = http
  const [secure = 0, ...extraHttps] = https
  return {
    http: plain,
    https: secure,
    rtsp: rtspPorts.plain,
    rtsps: rtspPorts.tls,
    dashboard: dashboard[0] ?? 0,
    ...(extraHttp.length > 0 ? { extra_http: extraHttp } : {}),
    ...(extraHttps.length > 0 ? { extra_https: extraHttps } : {}),
  }
}
