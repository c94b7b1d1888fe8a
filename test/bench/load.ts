/**
 * 50 clients that ask all kinds of things at once, each the next thing as soon as the last is answered: median and p99 by kind. Fails when a
 * GET takes 100 ms or a change 500 ms at the 99th percentile, or when anything but success is answered. Prints one JSON object. Run by
 * `make bench-load`.
 */
import { randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import type { Test } from 'tap'
import { login, until } from '../support/api.ts'
import { startServer } from '../support/server.ts'

const CLIENTS = 50
const WARM_UP_MS = 1500
const RUN_MS = 15_000
const GET_LIMIT_MS = 100
const CHANGE_LIMIT_MS = 500

interface Ask {
  readonly method: string
  readonly path: string
  readonly type?: string
  readonly body?: string | Buffer
}

interface Kind {
  readonly name: string
  /** Of all requests, relative to the others. */
  readonly share: number
  readonly ask: (n: number) => Ask
}

const get = (name: string, share: number, path: string): Kind => ({ name, share, ask: () => ({ method: 'GET', path }) })
const change = (name: string, method: string, share: number, path: string, body: (n: number) => unknown): Kind => ({
  name,
  share,
  ask: (n) => ({ method, path, type: 'application/json', body: JSON.stringify(body(n)) }),
})

const BOUNDARY = 'load'
const CONTENT = randomBytes(16 * 1024)

const KINDS: readonly Kind[] = [
  get('GET status', 20, '/api/status'),
  get('GET files', 8, '/api/files?directory=/media/data'),
  get('GET recordings', 10, '/api/recordings'),
  get('GET settings', 8, '/api/settings'),
  get('GET one setting', 8, '/api/settings/brightness'),
  get('GET config', 8, '/api/config'),
  get('GET camera status', 8, '/api/camera/status'),
  get('GET image', 8, '/image'),
  change('POST one setting', 'POST', 5, '/api/settings/recordingQueueSize', (n) => 1 + (n % 300)),
  change('POST settings', 'POST', 5, '/api/settings', (n) => ({ brightness: n % 100, timelapseInterval: 1000 + n })),
  change('PATCH config', 'PATCH', 4, '/api/config/storage', (n) => ({ storage: { retention_days: 1 + (n % 300) } })),
  change('PUT config', 'PUT', 3, '/api/config/storage', (n) => ({ storage: { quota_bytes: 10 ** 12 + n } })),
  { name: 'POST upload of 16 KiB', share: 5, ask: upload },
]

function upload(n: number): Ask {
  const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="load-${n % 20}.bin"\r\n\r\n`
  const field = `\r\n--${BOUNDARY}\r\nContent-Disposition: form-data; name="overwrite"\r\n\r\ntrue\r\n--${BOUNDARY}--\r\n`
  const body = Buffer.concat([Buffer.from(head), CONTENT, Buffer.from(field)])
  return { method: 'POST', path: '/upload', type: `multipart/form-data; boundary=${BOUNDARY}`, body }
}

/** Each has an address of its own: what one client may have under way is bounded. */
class Client {
  readonly agent: Agent

  constructor(
    private readonly port: number,
    private readonly token: string,
    index: number,
  ) {
    this.agent = new Agent({ keepAlive: true, maxSockets: 1, localAddress: `127.0.0.${index + 2}` })
  }

  /** The status. */
  send({ method, path, type, body }: Ask): Promise<number> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${this.token}`, ...(type && { 'content-type': type }) }
      const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
      const options = { host: '127.0.0.1', port: this.port, method, path, agent: this.agent, headers: { ...headers, ...length } }
      const outgoing = request(options, (answer) => {
        answer.on('end', () => resolve(answer.statusCode ?? 0)).on('error', reject)
        answer.resume()
      })
      outgoing.on('error', reject)
      outgoing.end(body)
    })
  }
}

const cleanups: (() => unknown)[] = []
// The test support wants somebody who cleans up at the end.
const owner = { teardown: (work: () => unknown) => cleanups.unshift(work) } as unknown as Test

function pick(): Kind {
  let left = Math.random() * KINDS.reduce((sum, { share }) => sum + share, 0)
  for (const kind of KINDS) {
    left -= kind.share
    if (left <= 0) return kind
  }
  return KINDS[0] as Kind
}

function percentile(sorted: readonly number[], share: number): number {
  return Math.round((sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN) * 10) / 10
}

async function main(): Promise<boolean> {
  const server = await startServer(owner, { args: ['--rate-limits', 'off', '--log-level', 'warn'] })
  const api = await login(server)
  await until(
    () => api.bytes('/image'),
    ({ status }) => status === 200,
    'a picture',
  )
  const clients = Array.from({ length: CLIENTS }, (_, index) => new Client(server.ports.http, api.token, index))
  const times = new Map<string, number[]>(KINDS.map(({ name }) => [name, []]))
  const failures = new Map<string, number>()
  const began = performance.now()
  let [sent, postponed] = [0, 0]
  const work = async (client: Client) => {
    for (;;) {
      const kind = pick()
      const start = performance.now()
      if (start > began + WARM_UP_MS + RUN_MS) return
      const status = await client.send(kind.ask(sent++))
      const failure = `${kind.name}: ${status}`
      // As many uploads as there may be are under way: to be tried again, and told at once.
      if (status === 503 && kind.ask === upload) postponed++
      else if (status !== 200) failures.set(failure, (failures.get(failure) ?? 0) + 1)
      else if (start > began + WARM_UP_MS) times.get(kind.name)?.push(performance.now() - start)
    }
  }
  await Promise.all(clients.map(work))
  for (const { agent } of clients) agent.destroy()

  let good = failures.size === 0
  const kinds: Record<string, unknown> = {}
  for (const [name, seen] of times) {
    seen.sort((a, b) => a - b)
    const p99 = percentile(seen, 0.99)
    const limit = name.startsWith('GET') ? GET_LIMIT_MS : CHANGE_LIMIT_MS
    // Not a number, when there was none, fails too.
    if (!(p99 < limit)) good = false
    kinds[name] = { requests: seen.length, p50_ms: percentile(seen, 0.5), p99_ms: p99, limit_ms: limit }
  }
  const requests = [...times.values()].reduce((sum, { length }) => sum + length, 0)
  const perSecond = Math.round(requests / (RUN_MS / 1000))
  process.stdout.write(
    `${JSON.stringify({ clients: CLIENTS, requests_per_second: perSecond, kinds, postponed_uploads: postponed, failures: Object.fromEntries(failures), good }, null, 2)}\n`,
  )
  return good
}

try {
  process.exitCode = (await main()) ? 0 : 1
} finally {
  for (const clean of cleanups) await clean()
}
