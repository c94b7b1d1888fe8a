/** Sends clients of plain HTTP to HTTPS, where that is asked for. */
import { InvalidRequest } from '../errors.ts'
import type { Exchange } from './exchange.ts'
import { isHost } from './security-headers.ts'

/** Watchdogs ask these over the shortest way, and many follow no redirection. */
export const WATCHDOG_PATHS: ReadonlySet<string> = new Set(['/health', '/api/health', '/api/v1/health'])

/** The address to go to; null where the request is to be answered. */
export function httpsLocation(exchange: Exchange, httpsPort: number | null): string | null {
  const { host, path, rawQuery, secure, listener } = exchange
  if (httpsPort === null || secure || WATCHDOG_PATHS.has(path)) return null
  if (!isHost(host)) throw new InvalidRequest('host', 'The Host header is missing or malformed')
  const name = host.replace(/:\d+$/, '')
  const port = httpsPort === 443 ? '' : `:${httpsPort}`
  // On the dashboard's port the front page is another one.
  const target = listener.name === 'dashboard' && path === '/' ? '/monitoring' : path
  return `https://${name}${port}${target}${rawQuery === '' ? '' : `?${rawQuery}`}`
}
