/** Requests of the server to its own listener: over the loopback, where it can be reached so, through the whole stack as a client's would go. */
import { request } from 'node:http'
import { isIPv6 } from 'node:net'

const PATIENCE_MS = 5000
const MAX_BODY = 1024 * 1024

export interface OwnAnswer {
  readonly status: number
  readonly body: string
}

/** `bind` is the address that the server listens on; a wildcard is reached over the loopback. */
export function askSelf(bind: string, port: number, path: string, headers: Record<string, string> = {}): Promise<OwnAnswer> {
  const host = bind === '0.0.0.0' ? '127.0.0.1' : bind === '::' ? '::1' : bind
  const name = isIPv6(host) ? `[${host}]` : host
  return new Promise((resolve, reject) => {
    // Its own connection each time: one that is kept would hide that no new ones are taken.
    const options = { host, port, path, agent: false, headers: { host: `${name}:${port}`, ...headers } } as const
    const sent = request({ ...options, signal: AbortSignal.timeout(PATIENCE_MS) }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (text: string) => {
        body += text
        if (body.length > MAX_BODY) response.destroy(new Error('the answer is too long'))
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
    })
    sent.on('error', reject)
    sent.end()
  })
}

/** Whether the server answers at all; what it answers does not matter. */
export async function answers(bind: string, port: number): Promise<boolean> {
  try {
    return (await askSelf(bind, port, '/health')).status > 0
  } catch {
    return false
  }
}
