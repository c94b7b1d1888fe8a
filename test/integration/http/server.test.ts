import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { Agent, get } from 'node:https'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import t from 'tap'
import WebSocket from 'ws'
import { InvalidCredentials, StartupError } from '../../../app/server/errors.ts'
import { type Peer, StaticAssets } from '../../../app/server/http/index.ts'
import { scratchFolder } from '../../support/scratch.ts'
import { Client, Seen, serve, until } from './harness.ts'

t.test('rate limits show on every answer and refuse in both forms', async (t) => {
  let now = 1_700_000_000_000
  const { client } = await serve(t, { rateLimits: () => 'device', now: () => now })
  for (let left = 9; left >= 0; left--) {
    const answer = await client.fetch('/image')
    t.equal(answer.status, 200)
    t.equal(answer.headers.get('x-ratelimit-limit'), '10')
    t.equal(answer.headers.get('x-ratelimit-remaining'), String(left))
    t.match(answer.headers.get('x-ratelimit-reset'), /^1700000001$/)
  }
  const refused = await client.json('/image')
  t.equal(refused.status, 429)
  t.equal(refused.headers.get('retry-after'), '1')
  t.match(refused.body, { error: { code: 'RATE_LIMITED' } })
  t.equal((await client.fetch('/api/status')).status, 200, 'another class')
  now += 1000
  t.equal((await client.fetch('/image')).status, 200)

  const other = await serve(t, { rateLimits: () => 'overview', now: () => now })
  for (let i = 0; i < 100; i++) t.equal((await other.client.fetch('/api/status', { as: null })).status, 401)
  const envelope = await other.client.json('/api/v1/status')
  t.strictSame(envelope.body, { error: 'Too many requests', limit: 100, period: 'minute', retry_after: 1 })
})

t.test('assets, the dashboard and the API page', async (t) => {
  const page = Buffer.from(`<!doctype html>${'camera '.repeat(500)}`)
  const files = new Map([
    ['index.html', page],
    ['monitoring.html', Buffer.from('m')],
    ['app.js', Buffer.from('1')],
  ])
  const { ports, client } = await serve(t, {
    assets: new StaticAssets(files),
    listeners: [
      { name: 'http', address: '127.0.0.1', port: 0 },
      { name: 'dashboard', address: '127.0.0.1', port: 0 },
    ],
  })
  const index = await client.fetch('/', { as: null, headers: { 'accept-encoding': 'br, gzip' } })
  t.equal(index.status, 200)
  t.equal(index.headers.get('content-type'), 'text/html; charset=utf-8')
  t.equal(index.headers.get('content-encoding'), 'br')
  t.match(index.headers.get('content-security-policy'), /default-src 'self'.*frame-ancestors 'none'/)
  t.equal(index.headers.get('referrer-policy'), 'no-referrer')
  t.equal(await index.text(), page.toString())
  const again = await client.fetch('/', {
    headers: { 'accept-encoding': 'br', 'if-none-match': index.headers.get('etag') ?? '' },
  })
  t.equal(again.status, 304)
  t.match((await client.fetch('/app.js')).headers.get('content-type'), /javascript/)
  t.equal(await (await client.fetch('/monitoring')).text(), 'm')

  const dashboard = new Client(ports.dashboard ?? 0)
  const redirect = await dashboard.fetch('/')
  t.equal(redirect.status, 302)
  t.equal(redirect.headers.get('location'), '/monitoring')
  t.equal((await dashboard.fetch('/api/status')).status, 200)

  t.match(await (await client.fetch('/api/docs', { as: null })).text(), /docs\.js/)
  t.match((await client.fetch('/docs.js', { as: null })).headers.get('content-type'), /javascript/)
  t.equal((await client.fetch('/api/openapi.json', { as: null })).status, 401)
  const { body } = await client.json('/api/openapi.json', { as: 'guest' })
  t.match(body, { openapi: '3.0.3', info: { version: '1.0.0' } })
  t.ok(body.paths['/api/openapi.json'] && body.paths['/api/v1/things/{id}'])
})

t.test('TLS beside plain HTTP', async (t) => {
  const directory = scratchFolder(t, 'http')
  const pem = await generate([{ name: 'commonName', value: 'camera' }])
  const tls = { keyFile: join(directory, 'key.pem'), certFile: join(directory, 'cert.pem') }
  await writeFile(tls.keyFile, pem.private)
  await writeFile(tls.certFile, pem.cert)
  const { ports } = await serve(t, { listeners: [{ name: 'https', address: '127.0.0.1', port: 0, tls }] })
  const agent = new Agent({ rejectUnauthorized: false })
  const request = get({
    host: '127.0.0.1',
    port: ports.https,
    path: '/api/status',
    agent,
    headers: { authorization: 'Bearer admin' },
  })
  const [response] = await once(request, 'response')
  t.equal(response.statusCode, 200)
  response.resume()
  agent.destroy()
  const bad = { name: 'https', address: '127.0.0.1', port: 0, tls: { ...tls, certFile: join(directory, 'none.pem') } } as const
  await t.rejects(serve(t, { listeners: [bad] }), /none\.pem/)
})

t.test('further listeners serve the same; the first is the one that is named', async (t) => {
  const listener = { name: 'http', address: '127.0.0.1', port: 0 } as const
  const { server, ports } = await serve(t, { listeners: [listener, { ...listener, name: 'dashboard' }, listener, listener] })
  const all = server.ports('http')
  t.equal(new Set(all).size, 3)
  t.equal(all[0], ports.http)
  for (const port of all) t.equal((await new Client(port).fetch('/api/status')).status, 200)
})

t.test('a taken port and a foreign address are one clear line', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  t.teardown(() => holder.close())
  const { port } = holder.address() as { port: number }
  for (const [address, number] of [
    ['127.0.0.1', port],
    ['192.0.2.1', 0],
  ] as const) {
    const failed = await serve(t, {
      listeners: [
        { name: 'http', address: '127.0.0.1', port: 0 },
        { name: 'https', address, port: number },
      ],
    }).catch((error: unknown) => error)
    t.ok(failed instanceof StartupError)
    t.match((failed as Error).message, new RegExp(`^Cannot listen on ${address.replaceAll('.', '\\.')}:${number} [^\\n]*$`))
  }
  const { ports } = await serve(t)
  const low = { name: 'http', address: '192.0.2.1', port: 80 } as const
  await t.rejects(
    serve(t, { listeners: [low] }),
    /may not bind ports below 1024/,
    'rights are one more thing that may be missing',
  )
  const second = serve(t, { listeners: [{ name: 'http', address: '127.0.0.1', port: ports.http ?? 0 }] })
  await t.rejects(second, /Cannot listen/, 'no port is shared in silence')
})

t.test('WebSocket: upgrade with credentials, messages, limits, refusal', async (t) => {
  const peers: Peer<string>[] = []
  const closes: number[] = []
  const { ports, client, server } = await serve(t, {
    limits: { sockets: 2 },
    websocket: {
      path: '/api/v1',
      behaviour: {
        onUpgrade: async (source) => {
          if (source.token === 'wrong') throw new InvalidCredentials()
          return `${source.token} ${source.address}`
        },
        open: (peer: Peer<string>) => void peers.push(peer),
        message: (peer: Peer<string>, text: string) => {
          if (text === 'throw') throw new Error('handler')
          peer.send(text.toUpperCase())
        },
        close: (_peer: Peer<string>, code: number) => void closes.push(code),
      },
    },
  })
  const url = `ws://127.0.0.1:${ports.http}/api/v1`
  const plain = await client.json('/api/v1')
  t.equal(plain.status, 404)
  t.match(plain.body, { status: 'error', error: { code: 'NOT_FOUND' } })

  const socket = new WebSocket(`${url}?token=t`)
  await once(socket, 'open')
  t.equal(peers[0]?.data, 't 127.0.0.1')
  socket.send('throw')
  socket.send('hello')
  const [echo] = await once(socket, 'message')
  t.equal(String(echo), 'HELLO')

  const refused = new WebSocket(`${url}?token=wrong`)
  const [, response] = await once(refused, 'unexpected-response').catch(() => [null, { statusCode: 401 }])
  t.equal(response.statusCode, 401)

  const second = new WebSocket(url)
  await once(second, 'open')
  const third = new WebSocket(url)
  const [, busy] = await once(third, 'unexpected-response')
  t.equal(busy.statusCode, 503)

  second.send('x'.repeat(70_000))
  await once(second, 'close')
  socket.send(Buffer.from('binary'))
  const [code] = await once(socket, 'close')
  t.equal(code, 1003)
  await until(() => closes.length === 2)
  t.equal(peers[0]?.send('late'), false, 'after the end nothing happens')
  t.equal(server.load.sockets, 0)
})

t.test('a WebSocket client that does not read is dropped', async (t) => {
  let closed = false
  let peer: Peer<unknown> | undefined
  const { ports } = await serve(t, {
    websocket: {
      path: '/api/v1',
      behaviour: {
        onUpgrade: () => null,
        open: (opened) => {
          peer = opened
        },
        message() {},
        close: () => {
          closed = true
        },
      },
    },
  })
  const socket = new WebSocket(`ws://127.0.0.1:${ports.http}/api/v1`)
  socket.on('error', () => {})
  await once(socket, 'open')
  socket.pause()
  let most = 0
  await until(() => {
    peer?.send('x'.repeat(100_000))
    most = Math.max(most, peer?.buffered ?? 0)
    return closed
  })
  t.ok(most <= 1_200_000, `at most ${most} bytes were held`)
  socket.terminate()
})

t.test('stop: answers under way may end, what hangs is broken, nothing is left', async (t) => {
  const seen = new Seen()
  const { client, server } = await serve(t, { seen, limits: { stopMs: 50 } })
  const idle = await client.socket()
  const waiting = client.fetch('/api/wait').catch((error: unknown) => error)
  await until(() => seen.calls === 1)
  await Promise.all([server.stop(), once(idle, 'close')])
  t.ok((await waiting) instanceof Error)
  t.equal(seen.aborts, 1)
  await t.rejects(client.fetch('/api/status'))
  await server.stop()
})

t.test('a process with a stopped server ends by itself', async (t) => {
  const script = `
    import { HttpServer, StaticAssets } from './app/server/http/index.ts'
    const server = new HttpServer({ listeners: [{ name: 'http', address: '127.0.0.1', port: 0 }], routes: [], authenticate: () => null,
      log: console, assets: new StaticAssets(), version: '1' })
    server.start().then(async ({ http }) => {
      await (await fetch('http://127.0.0.1:' + http + '/api/docs')).text()
      await server.stop()
      console.log('stopped')
    })`
  const child = spawn(process.execPath, ['--import=tsx', '--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill())
  let output = ''
  child.stdout.on('data', (data) => {
    output += data
  })
  const [code] = await once(child, 'close')
  t.equal(code, 0)
  t.match(output, /stopped/)
})
