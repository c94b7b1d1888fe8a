import { once } from 'node:events'
import { readdir, readlink, symlink, truncate, utimes, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { scratchFolder } from '../../support/scratch.ts'
import { serve, until } from './harness.ts'

async function openFiles(directory: string): Promise<number> {
  const links = await Promise.all((await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
  return links.filter((link) => link.startsWith(directory)).length
}

/** Reads without keeping. */
async function lengthOf(response: Response): Promise<number> {
  const reader = response.body?.getReader()
  let total = 0
  for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) total += part.value.length
  return total
}

t.test('whole, in ranges, conditional', async (t) => {
  const directory = scratchFolder(t, 'http')
  const bytes = Buffer.from(Array.from({ length: 700_000 }, (_, index) => (index * 31) % 251))
  await writeFile(join(directory, 'a b.mp4'), bytes)
  await writeFile(join(directory, 'empty'), '')
  const { client } = await serve(t, { directory })
  const get = (headers: Record<string, string> = {}, method = 'GET') => client.fetch('/files/a%20b.mp4', { headers, method })

  const whole = await get()
  t.equal(whole.status, 200)
  t.ok(bytes.equals(Buffer.from(await whole.arrayBuffer())))
  t.match(Object.fromEntries(whole.headers), {
    'content-length': '700000',
    'content-type': 'video/mp4',
    'accept-ranges': 'bytes',
    'content-disposition': `attachment; filename="T_r.mp4"; filename*=UTF-8''T%C3%BCr.mp4`,
  })
  const etag = whole.headers.get('etag') ?? ''
  const modified = whole.headers.get('last-modified') ?? ''
  t.match(etag, /^"[a-z0-9-]+"$/)

  for (const [range, start, end] of [
    ['bytes=0-0', 0, 0],
    ['bytes=300000-', 300_000, 699_999],
    ['bytes=-5', 699_995, 699_999],
    ['bytes=10-600000', 10, 600_000],
  ] as const) {
    const part = await get({ range })
    t.equal(part.status, 206, range)
    t.equal(part.headers.get('content-range'), `bytes ${start}-${end}/700000`)
    t.ok(bytes.subarray(start, end + 1).equals(Buffer.from(await part.arrayBuffer())))
  }
  const beyond = await get({ range: 'bytes=700000-' })
  t.equal(beyond.status, 416)
  t.equal(beyond.headers.get('content-range'), 'bytes */700000')
  t.match(await beyond.json(), { error: { code: 'RANGE_NOT_SATISFIABLE' } })
  const statusOf = async (headers: Record<string, string>) => {
    const response = await get(headers)
    await response.arrayBuffer()
    return response.status
  }
  t.equal(await statusOf({ range: 'bytes=0-1,4-5' }), 200)
  t.equal(await statusOf({ range: 'bytes=0-1', 'if-range': etag }), 206)
  t.equal(await statusOf({ range: 'bytes=0-1', 'if-range': '"old"' }), 200)
  t.equal(await statusOf({ range: 'bytes=0-1', 'if-range': modified }), 206)
  t.equal(await statusOf({ 'if-none-match': etag }), 304)
  t.equal(await statusOf({ 'if-none-match': '"old"' }), 200)
  t.equal(await statusOf({ 'if-modified-since': modified }), 304)
  for (const date of ['2099', '2099-01-01T00:00:00Z', 'Fri, 31 Feb 2099 00:00:00 GMT', 'Thu, 01 Jan 2099 00:00:00 +0100']) {
    t.equal(await statusOf({ 'if-modified-since': date }), 200, date)
  }
  t.equal(await statusOf({ range: 'bytes=0-1', 'if-range': new Date(modified).toISOString() }), 200, 'no date of HTTP')

  const head = await get({ range: 'bytes=0-1' }, 'HEAD')
  t.equal(head.status, 200)
  t.equal(head.headers.get('content-length'), '700000')
  t.equal((await client.fetch('/files/empty')).headers.get('content-length'), '0')
  await utimes(join(directory, 'a b.mp4'), 1, 1)
  t.equal(await statusOf({ 'if-none-match': etag }), 200, 'another time, another tag')
  await until(async () => (await openFiles(directory)) === 0)
})

t.test('what is no regular file does not exist', async (t) => {
  const directory = scratchFolder(t, 'http')
  await symlink('/dev/zero', join(directory, 'zero'))
  const { client } = await serve(t, { directory })
  for (const path of ['/files/missing', '/files/zero', '/files/zero/x', `/files/${'a'.repeat(300)}`]) {
    const answer = await client.json(path)
    t.equal(answer.status, 404, path)
    t.match(answer.body, { error: { code: 'FILE_NOT_FOUND' } })
  }
})

t.test('a slow reader costs little memory and stalls nobody; its file is closed when it goes', async (t) => {
  const directory = scratchFolder(t, 'http')
  await writeFile(join(directory, 'big'), Buffer.alloc(64 * 1024 * 1024, 'x'))
  const { client, server } = await serve(t, { directory })
  const request = 'GET /files/big HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\n\r\n'
  const before = process.memoryUsage().rss
  const slow = await Promise.all(Array.from({ length: 8 }, () => client.socket(request)))
  for (const socket of slow) {
    socket.once('data', () => socket.pause())
  }
  await until(async () => (await openFiles(directory)) === slow.length)
  for (let i = 0; i < 20; i++) {
    const begin = performance.now()
    t.equal((await client.fetch('/api/status')).status, 200)
    const took = performance.now() - begin
    if (took > 5000) t.fail(`a status took ${took} ms`)
  }
  const fast = await client.fetch('/files/big')
  t.equal(await lengthOf(fast), 64 * 1024 * 1024, 'another client gets the file meanwhile')
  t.equal(server.load.requests, slow.length)
  const grown = (process.memoryUsage().rss - before) / 1024 / 1024
  t.ok(grown < 150, `eight stalled downloads of 64 MiB: RSS grew by ${grown.toFixed(0)} MiB`)
  for (const socket of slow) socket.destroy()
  await until(async () => (await openFiles(directory)) === 0)
  t.equal(server.load.requests, 0)
})

t.test('a download that is not read is broken off in the end, one that is read slowly is not', async (t) => {
  const directory = scratchFolder(t, 'http')
  await writeFile(join(directory, 'big'), Buffer.alloc(32 * 1024 * 1024))
  const { client, server } = await serve(t, { directory, limits: { stallMs: 1000 } })
  const request = 'GET /files/big HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\n\r\n'
  const stalled = await client.socket(request)
  stalled.once('data', () => stalled.pause())
  await until(() => server.load.requests === 1)
  await until(() => server.load.requests === 0)
  t.equal(await openFiles(directory), 0)
  const slow = await client.socket(`${request.slice(0, -2)}Connection: close\r\n\r\n`)
  slow.on('data', () => {
    slow.pause()
    setImmediate(() => slow.resume())
  })
  await once(slow, 'close')
  t.ok(slow.bytesRead > 32 * 1024 * 1024)
})

t.test('a client that pauses for a while gets every byte once', async (t) => {
  const directory = scratchFolder(t, 'http')
  const bytes = Buffer.alloc(16 * 1024 * 1024)
  for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32LE(at, at)
  await writeFile(join(directory, 'big'), bytes)
  // The server looks again every 100 ms.
  const { client } = await serve(t, { directory, limits: { streamSpanMs: 200, streamSpanBytes: 0 } })
  const socket = await client.socket('GET /files/big HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\n\r\n')
  t.teardown(() => socket.destroy())
  const chunks: Buffer[] = []
  socket.on('data', (data) => chunks.push(data))
  for (let pause = 0; pause < 3; pause++) {
    await until(() => chunks.length > pause * 3)
    socket.pause()
    await new Promise((resolve) => setTimeout(resolve, 350))
    socket.resume()
  }
  await until(() => chunks.reduce((sum, { length }) => sum + length, 0) >= bytes.length + 200)
  const answer = Buffer.concat(chunks)
  const body = answer.subarray(answer.indexOf('\r\n\r\n') + 4)
  t.ok(body.subarray(0, bytes.length).equals(bytes.subarray(0, body.length)), 'the same bytes')
})

t.test('downloads at once are bounded, of one client and in all', async (t) => {
  const directory = scratchFolder(t, 'http')
  await writeFile(join(directory, 'big'), Buffer.alloc(32 * 1024 * 1024))
  const { client, server } = await serve(t, { directory, limits: { streamsAtOnce: 3, streamsPerClient: 2 } })
  const request = 'GET /files/big HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\n\r\n'
  /** Another address is another client. */
  const from = async (localAddress: string) => {
    const socket = connect({ port: client.port, host: '127.0.0.1', localAddress })
    t.teardown(() => socket.destroy())
    socket.on('error', () => {})
    socket.write(request)
    const [head] = await once(socket, 'data')
    socket.pause()
    return { socket, head: String(head.toString('latin1')) }
  }
  const open = [await from('127.0.0.1'), await from('127.0.0.1')]
  for (const { head } of open) t.match(head, /^HTTP\/1.1 200 /)
  const refused = await client.json('/files/big')
  t.match(refused, { status: 503, body: { error: { code: 'SERVICE_UNAVAILABLE', details: 'downloads' } } })
  t.equal(refused.headers.get('retry-after'), '1')
  const head = await client.fetch('/files/big', { method: 'HEAD' })
  t.equal(head.status, 200, 'HEAD takes no place')
  const headers = { 'if-none-match': head.headers.get('etag') ?? '' }
  t.equal((await client.fetch('/files/big', { headers })).status, 304, 'nor does what is known')
  open.push(await from('127.0.0.2'))
  t.match(open[2]?.head, /^HTTP\/1.1 200 /, 'others have places still')
  t.match((await from('127.0.0.3')).head, /^HTTP\/1.1 503 /)
  t.equal((await client.fetch('/api/status')).status, 200)
  for (const { socket } of open) socket.destroy()
  await until(() => server.load.requests === 0)
  t.equal(await lengthOf(await client.fetch('/files/big')), 32 * 1024 * 1024)
})

t.test('who takes too little in a span of time is broken off, although it does not stall', async (t) => {
  const directory = scratchFolder(t, 'http')
  await writeFile(join(directory, 'big'), Buffer.alloc(32 * 1024 * 1024))
  const { client, server } = await serve(t, { directory, limits: { streamSpanMs: 100, streamSpanBytes: 512 * 1024 } })
  const socket = await client.socket('GET /files/big HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\n\r\n')
  t.teardown(() => socket.destroy())
  socket.on('data', () => {
    socket.pause()
    setTimeout(() => socket.resume(), 50)
  })
  await until(() => server.load.requests === 1)
  await until(() => server.load.requests === 0)
  t.ok(socket.bytesRead > 0 && socket.bytesRead < 32 * 1024 * 1024)
  await until(async () => (await openFiles(directory)) === 0)
})

t.test('a file cut short while it is served breaks the connection', async (t) => {
  const directory = scratchFolder(t, 'http')
  const path = join(directory, 'big')
  await writeFile(path, Buffer.alloc(64 * 1024 * 1024))
  const { client, server } = await serve(t, { directory })
  const socket = await client.socket('GET /files/big HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\n\r\n')
  await until(() => server.load.requests === 1)
  await truncate(path, 10)
  let closed = false
  socket.on('data', () => {})
  socket.on('close', () => {
    closed = true
  })
  await until(() => closed)
  t.ok(socket.bytesRead < 64 * 1024 * 1024)
  await until(async () => (await openFiles(directory)) === 0)
})
