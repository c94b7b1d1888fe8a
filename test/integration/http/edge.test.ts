/** What stands around every answer: limits, proxies, the redirection to HTTPS, and the headers for browsers. */
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { request as requestTls } from 'node:https'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import t from 'tap'
import WebSocket from 'ws'
import { type HttpServerOptions, route, StaticAssets } from '../../../app/server/http/index.ts'
import { scratchFolder } from '../../support/scratch.ts'
import { log, Seen, serve, table, until } from './harness.ts'

interface Got {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

async function get(
  port: number | undefined,
  path: string,
  headers: Record<string, string | string[]> = {},
  tls = false,
): Promise<Got> {
  const options = {
    host: '127.0.0.1',
    port,
    path,
    headers: { authorization: 'Bearer admin', ...headers },
    rejectUnauthorized: false,
  }
  const asked = (tls ? requestTls : request)({ ...options, agent: false })
  asked.end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  let body = ''
  for await (const chunk of response) body += String(chunk)
  return { status: response.statusCode ?? 0, headers: response.headers, body }
}

/** Who the client is said to be, as a handler sees it. */
const who = route({
  method: 'GET',
  path: '/api/who',
  access: 'public',
  rate: 'api',
  tag: 'test',
  summary: 'test',
  response: { binary: 'application/json' },
  handler: ({ address, secure }) => ({ address, secure }),
})

async function serveBoth(t: Parameters<typeof serve>[0], options: Partial<HttpServerOptions> = {}) {
  const directory = scratchFolder(t, 'http')
  const pem = await generate([{ name: 'commonName', value: 'camera' }])
  const tls = { keyFile: join(directory, 'key.pem'), certFile: join(directory, 'cert.pem') }
  await writeFile(tls.keyFile, pem.private)
  await writeFile(tls.certFile, pem.cert)
  await writeFile(join(directory, 'clip.mp4'), 'film')
  const listener = { address: '127.0.0.1', port: 0 }
  const files = new Map([
    ['index.html', Buffer.from('<!doctype html>')],
    ['app.js', Buffer.from('1')],
  ])
  return serve(t, {
    directory,
    routes: [...table(directory, new Seen()), who],
    assets: new StaticAssets(files),
    listeners: [
      { name: 'http', ...listener },
      { name: 'https', tls, ...listener },
      { name: 'dashboard', ...listener },
    ],
    log,
    ...options,
  })
}

t.test('proxies: only those that are configured are believed', async (t) => {
  const plain = await serveBoth(t)
  const claim = { 'x-forwarded-for': '198.51.100.1', 'x-forwarded-proto': 'https' }
  t.strictSame(JSON.parse((await get(plain.ports.http, '/api/who', claim)).body), { address: '127.0.0.1', secure: false })

  const { ports } = await serveBoth(t, {
    policy: { trustedProxies: ['127.0.0.0/8'] },
    rateLimits: () => 'device',
    now: () => 1_700_000_000_000,
  })
  const ask = async (headers: Record<string, string | string[]>) => JSON.parse((await get(ports.http, '/api/who', headers)).body)
  t.strictSame(await ask(claim), { address: '198.51.100.1', secure: true })
  t.strictSame(await ask({}), { address: '127.0.0.1', secure: false })
  t.strictSame(
    await ask({ 'x-forwarded-for': ['203.0.113.66', '198.51.100.1'], 'x-forwarded-proto': 'https, http' }),
    { address: '198.51.100.1', secure: false },
    'a line that the client has sent itself stands before the one of the proxy',
  )
  const image = (address: string) => get(ports.http, '/image', { 'x-forwarded-for': address })
  for (let i = 0; i < 10; i++) t.equal((await image(`2001:db8:0:1::${i + 1}`)).status, 200)
  t.equal((await image('2001:db8:0:1:ffff::1')).status, 429, 'one /64 is one client')
  t.equal((await image('2001:db8:0:2::1')).status, 200)
})

t.test('limits: headers on every limited answer, both forms of 429, upgrades and unknown paths included', async (t) => {
  const { ports } = await serveBoth(t, {
    rateLimits: () => 'device',
    now: () => 1_700_000_000_000,
    websocket: { path: '/api/v1', behaviour: { onUpgrade: () => null, open() {}, message() {}, close() {} } },
  })
  let left = 100
  for (const [path, status] of [
    ['/api/status', 200],
    ['/api/nothing', 404],
    ['/api/busy', 503],
    ['/api/broken', 500],
    ['/api/things/x?dry=maybe', 405],
  ] as const) {
    const { headers, status: got } = await get(ports.http, path)
    t.equal(got, status, path)
    t.equal(headers['x-ratelimit-limit'], '100')
    t.equal(headers['x-ratelimit-remaining'], String(--left), path)
    t.equal(headers['x-ratelimit-reset'], '1700000001')
  }
  t.equal(
    (await get(ports.http, '/api/status', { authorization: 'Bearer wrong' })).headers['x-ratelimit-remaining'],
    String(--left),
  )
  while (left-- > 0) await get(ports.http, '/api/status')
  for (const path of ['/api/status', '/api/nothing', '/nothing']) {
    const { status, headers, body } = await get(ports.http, path)
    t.equal(status, 429)
    t.match(headers, { 'retry-after': '1', 'x-ratelimit-remaining': '0', 'cache-control': 'no-store' })
    t.match(JSON.parse(body), {
      error: { code: 'RATE_LIMITED', message: 'Too many requests', details: '100 per second', timestamp: /^2023-11-14T22:13:20/ },
    })
  }
  t.strictSame(JSON.parse((await get(ports.http, '/api/v1/status')).body), {
    error: 'Too many requests',
    limit: 100,
    period: 'second',
    retry_after: 1,
  })
  const socket = new WebSocket(`ws://127.0.0.1:${ports.http}/api/v1`)
  socket.on('error', () => {})
  const [, refused] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
  t.equal(refused.statusCode, 429)
  t.equal((await get(ports.http, '/app.js')).status, 200, 'the console still loads')
})

t.test('redirection to HTTPS', async (t) => {
  const behaviour = { onUpgrade: () => null, open() {}, message() {}, close() {} }
  const { ports } = await serveBoth(t, {
    policy: { redirectToHttps: true, trustedProxies: ['127.0.0.1'] },
    websocket: { path: '/api/v1', behaviour },
  })
  const to = async (port: number | undefined, path: string, host: string) => {
    const { status, headers } = await get(port, path, { host })
    return [status, headers.location]
  }
  const secure = (host: string, path: string) => [308, `https://${host}:${ports.https}${path}`]
  t.strictSame(await to(ports.http, '/', 'camera.local:8080'), secure('camera.local', '/'))
  t.strictSame(await to(ports.http, '/api/status?a=%20b', '[::1]:8080'), secure('[::1]', '/api/status?a=%20b'))
  t.strictSame(await to(ports.dashboard, '/', 'camera'), secure('camera', '/monitoring'))
  t.equal((await get(ports.http, '/', { host: 'evil.example/x' })).status, 400)
  t.equal((await get(ports.http, '/api/health')).status, 200, 'watchdogs are answered')
  t.equal((await get(ports.http, '/api/status', { 'x-forwarded-proto': 'https' })).status, 200, 'TLS ended at the proxy')
  t.equal((await get(ports.https, '/api/status', {}, true)).status, 200)
  const socket = new WebSocket(`ws://127.0.0.1:${ports.http}/api/v1`)
  socket.on('error', () => {})
  const [, answer] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
  t.equal(answer.statusCode, 308)
})

t.test('HSTS: when asked, and over TLS only', async (t) => {
  const hsts = 'strict-transport-security'
  const { ports } = await serveBoth(t, { policy: { hstsMaxAge: 600, trustedProxies: ['127.0.0.1'] } })
  t.equal((await get(ports.https, '/api/status', {}, true)).headers[hsts], 'max-age=600')
  t.equal((await get(ports.https, '/', {}, true)).headers[hsts], 'max-age=600')
  t.equal((await get(ports.http, '/api/status')).headers[hsts], undefined)
  t.equal((await get(ports.http, '/api/status', { 'x-forwarded-proto': 'https' })).headers[hsts], 'max-age=600')
  const without = await serveBoth(t)
  t.equal((await get(without.ports.https, '/api/status', {}, true)).headers[hsts], undefined)
})

t.test('headers for browsers on every kind of answer', async (t) => {
  const { ports } = await serveBoth(t)
  const everywhere = { 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY', 'referrer-policy': 'no-referrer' }
  const closed = "default-src 'none'; frame-ancestors 'none'"
  const api = { 'cache-control': 'no-store', 'content-security-policy': closed, 'cross-origin-resource-policy': 'same-origin' }
  const binary = /^default-src 'none'; img-src 'self'; media-src 'self'.*frame-ancestors 'none'$/
  const kinds: [string, number, Record<string, unknown>][] = [
    ['/api/status', 200, api],
    ['/api/v1/status', 200, api],
    ['/api/large', 200, api],
    ['/api/nothing', 404, api],
    ['/api/busy', 503, api],
    ['/api/broken', 500, api],
    [
      '/image',
      200,
      { 'cache-control': 'no-store', 'content-security-policy': binary, 'cross-origin-resource-policy': undefined },
    ],
    ['/files/clip.mp4', 200, { 'cache-control': 'private, no-cache', 'content-security-policy': binary }],
    ['/files/none.mp4', 404, api],
    ['/app.js', 200, { 'cache-control': 'no-cache', 'cross-origin-resource-policy': 'same-origin' }],
  ]
  for (const [path, status, expected] of kinds) {
    const got = await get(ports.http, path)
    t.equal(got.status, status, path)
    t.match(got.headers, { ...everywhere, ...expected }, path)
  }
  t.match((await get(ports.http, '/api/status', { authorization: 'Bearer x' })).headers, { ...everywhere, ...api }, '401')

  const page = await get(ports.http, '/', { host: 'camera.local:8080' })
  t.match(page.headers, { ...everywhere, 'permissions-policy': /camera=\(\), .*microphone=\(\)/ })
  const policy = String(page.headers['content-security-policy'])
  for (const rule of [
    "default-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "object-src 'none'",
    "form-action 'self'",
  ]) {
    t.ok(policy.split('; ').includes(rule), rule)
  }
  t.match(policy, "connect-src 'self' ws://camera.local:8080 wss://camera.local:8080;")
  t.equal(page.headers['cross-origin-opener-policy'], undefined, 'over plain HTTP browsers only complain about it')
  t.equal((await get(ports.https, '/', {}, true)).headers['cross-origin-opener-policy'], 'same-origin')
  const odd = await get(ports.http, '/', { host: "x; script-src 'unsafe-inline'" })
  t.notMatch(String(odd.headers['content-security-policy']), /script-src/, 'nothing of a strange Host gets in')
  const again = await get(ports.http, '/', { 'if-none-match': page.headers.etag ?? '', host: 'camera.local:8080' })
  t.equal(again.status, 304)
  t.equal(again.headers['content-security-policy'], policy, 'a 304 does not replace the policy of the kept page')
})

t.test('requests under way are bounded, health is not, and the bound may change meanwhile', async (t) => {
  const seen = new Seen()
  const { server, client } = await serve(t, { seen, policy: { maxRequests: 2 } })
  const leave = new AbortController()
  const wait = async (calls: number) => {
    client.fetch('/api/wait', { signal: leave.signal }).catch(() => undefined)
    await until(() => seen.calls === calls)
  }
  await wait(1)
  t.equal((await client.json('/api/status')).status, 200)
  await wait(2)
  const refused = await client.json('/api/status')
  t.match(refused, { status: 503, body: { error: { code: 'SERVICE_UNAVAILABLE', details: 'limit 2' } } })
  t.equal(refused.headers.get('retry-after'), '1')
  t.equal((await client.json('/api/health')).status, 200)
  server.configure({ maxRequests: 3 })
  t.equal((await client.json('/api/status')).status, 200)
  leave.abort()
  await until(() => server.load.requests === 0)
})
