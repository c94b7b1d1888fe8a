import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { WebSocket } from 'ws'
import { call, login, until } from '../support/api.ts'
import { usage } from '../support/process.ts'
import { scratchFolder } from '../support/scratch.ts'
import { startServer, type TestServer } from '../support/server.ts'

const MB = 1024 * 1024

/** Status of a POST of a large file by curl, which reads the answer although it is still sending. */
async function upload(server: TestServer, token: string, file: string, ...headers: string[]): Promise<string> {
  const all = [`Authorization: Bearer ${token}`, 'Content-Type: application/json', 'Expect:', ...headers].flatMap((header) => [
    '-H',
    header,
  ])
  const args = [
    '-s',
    '-o',
    '/dev/null',
    '-w',
    '%{http_code}',
    ...all,
    '--data-binary',
    `@${file}`,
    `${server.base}/api/recording/start`,
  ]
  return (await promisify(execFile)('curl', args)).stdout
}

t.test('each kind of nonsense gets its documented error, costs no memory, and the server goes on', async (t) => {
  const server = await startServer(t, { args: ['--rate-limits', 'off'] })
  const api = await login(server)
  const before = usage(server.pid).rssMb

  const start = '/api/recording/start'
  for (const [body, details] of [
    ['{"duration": ', 'body'],
    ['[1,2]', 'body'],
    ['"text"', 'body'],
    [{ duration: '5' }, 'body.duration'],
    [{ duration: 1.5 }, 'body.duration'],
    [{ durration: 5 }, 'body.durration'],
    ['{"__proto__": {"x": 1}}', 'body.__proto__'],
    [{ filename: 'x'.repeat(300) }, 'body.filename'],
  ] as const) {
    t.match(
      await api.post(start, body),
      { status: 400, body: { error: { code: 'INVALID_REQUEST', details } } },
      JSON.stringify(body).slice(0, 60),
    )
  }
  t.match(await call(`${server.base}/api/v1/recording/start`, 'POST', { authorization: `Bearer ${api.token}` }, '{'), {
    status: 400,
    body: { status: 'error', error: { code: 'INVALID_REQUEST' }, timestamp: Number },
  })

  const file = join(scratchFolder(t, 'large'), 'body')
  writeFileSync(file, '')
  truncateSync(file, 100 * MB)
  t.equal(await upload(server, api.token, file), '413', '100 MB, announced')
  t.equal(await upload(server, api.token, file, 'Transfer-Encoding: chunked'), '413', '100 MB in chunks')

  t.match((await api.get('/api/recordings')).body, { total: 0 }, 'nothing was started')
  t.equal((await api.get('/api/status')).status, 200)
  const grown = usage(server.pid).rssMb - before
  t.ok(grown < 60, `grew by ${grown.toFixed(0)} MB`)
})

t.test('bodies that come slowly do not hold the server', { timeout: 240_000 }, async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const sockets = Array.from({ length: 50 }, () => {
    const socket = connect(server.ports.http, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write(
      `POST /api/recording/start HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${api.token}\r\nContent-Length: 50\r\n\r\n{`,
    )
    return socket
  })
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  const answers: string[] = []
  for (const socket of sockets) socket.on('data', (chunk) => answers.push(String(chunk)))
  const closed = Promise.all(sockets.map((socket) => once(socket, 'close')))
  t.equal((await api.get('/api/status')).status, 200, 'others are served meanwhile')
  await closed
  t.equal(answers.filter((answer) => / 400 [\s\S]*The body took too long/.test(answer)).length, 32, 'the share of one address')
  t.equal(answers.filter((answer) => / 503 /.test(answer)).length, 18, 'the rest')
  t.equal((await api.get('/api/status')).status, 200)
})

t.test('bodies that are never sent block nobody else, nor does a refused login end the server', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const head = 'POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{'
  const from = (address: string) => {
    const socket = connect({ port: server.ports.http, host: '127.0.0.1', localAddress: address })
    socket.on('error', () => undefined)
    socket.write(head)
    return socket
  }
  const sockets = Array.from({ length: 60 }, () => from('127.0.0.9'))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  const refusals = sockets.map((socket) => once(socket, 'data') as Promise<[Buffer]>)
  t.match(String(await Promise.any(refusals)), /503/, 'one address gets its share and no more')
  const garbage = connect({ port: server.ports.http, host: '127.0.0.1', localAddress: '127.0.0.9' })
  const body = 'POST /api/camera/stop HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a.b.c\r\nContent-Length: 2\r\n\r\n{}'
  garbage.write(body)
  t.match(String(await once(garbage, 'data')), / (401|503) /)
  garbage.destroy()
  t.match(await api.put('/api/camera/settings', { brightness: 51 }), { status: 200 }, 'another address is served')
})

t.test('no filename leads outside the storage', async (t) => {
  const server = await startServer(t, { args: ['--rate-limits', 'off', '--camera', 'test:160x120@10'] })
  const api = await login(server)
  const outside = () => readdirSync(server.dataDir).sort().join()
  const before = outside()
  const piece = fc.constantFrom('..', '/', '\\', '%2e%2e', '\u0000', 'a', '.jpg', '\n', '~', '/etc/passwd', '\u202e', '名')
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { minLength: 1, maxLength: 12 }).map((pieces) => pieces.join('')),
      async (filename) => {
        const { status, body } = await api.post('/snapshot', { filename })
        if (status !== 200) return [400, 422, 503].includes(status)
        const inside = /^\/media\/data\/snapshots\/\d{4}\/\d\d\/\d\d\/[^/]+\.jpg$/.test(String(body.path))
        return inside && existsSync(join(server.dataDir, String(body.path).replace('/media/data', 'media')))
      },
    ),
    { numRuns: 60 },
  )
  t.equal(outside(), before)
  for (const path of [
    '/../../etc/passwd',
    '/%2e%2e/%2e%2e/etc/passwd',
    '//etc/passwd',
    '/api/recordings/..%2f..%2fetc',
    '/api/recordings/%00',
    '/%zz',
  ]) {
    const socket = connect(server.ports.http, '127.0.0.1')
    socket.end(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${api.token}\r\nConnection: close\r\n\r\n`)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    t.match(answer.toString(), /^HTTP\/1.1 (400|404) /, path)
    socket.destroy()
  }
})

t.test('a WebSocket flood does not grow the server', async (t) => {
  const server = await startServer(t)
  const { token } = await login(server)
  const address = `ws://127.0.0.1:${server.ports.http}/api/v1?token=${token}`
  const before = usage(server.pid).rssMb
  for (let round = 0; round < 5; round++) {
    const socket = new WebSocket(address)
    const closed = once(socket, 'close')
    socket.on('error', () => undefined)
    await once(socket, 'open')
    for (let i = 0; i < 20_000 && socket.readyState === WebSocket.OPEN; i++) socket.send('{"get":["fps","brightness"]}')
    t.equal((await closed)[0], 1008)
  }
  const big = new WebSocket(address)
  await once(big, 'open')
  const closed = once(big, 'close')
  big.on('error', () => undefined)
  big.send('x'.repeat(10 * MB))
  await closed
  const grown = usage(server.pid).rssMb - before
  t.ok(grown < 60, `grew by ${grown.toFixed(0)} MB`)
  await until(() => login(server).then(() => true), Boolean, 'the server goes on')
})

t.test('requests beyond the rate are refused with the headers that say so', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const answers = await Promise.all(Array.from({ length: 30 }, () => api.bytes('/image?quality=20')))
  const refused = answers.filter(({ status }) => status === 429)
  t.ok(refused.length >= 15, `${refused.length} of 30`)
  const headers = refused[0]?.headers
  t.equal(headers?.get('x-ratelimit-limit'), '10')
  t.equal(headers?.get('x-ratelimit-remaining'), '0')
  t.match(headers?.get('retry-after'), /^\d+$/)
  t.match(headers?.get('x-ratelimit-reset'), /^\d{10}$/)
  t.equal((await api.get('/api/status')).status, 200, 'another class has its own budget')
})
