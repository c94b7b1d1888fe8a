import t from 'tap'
import { isLast, Seen, serve, until } from './harness.ts'

const head = 'PUT /api/things/1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\nContent-Type: application/json\r\n'

t.test('a body announced too large is refused before it comes', async (t) => {
  const { client } = await serve(t)
  const answer = await client.raw(`${head}Content-Length: 100000000\r\n\r\n`)
  t.match(answer, /^HTTP\/1\.1 413 .*Connection: close.*"PAYLOAD_TOO_LARGE"/s)
  const whole = await client.fetch('/api/things/1', { method: 'PUT', body: Buffer.alloc(20_000_000) })
  t.equal(whole.status, 413)
  t.equal((await client.fetch('/api/status')).status, 200)
})

t.test('a chunked body is refused where it grows too large, and one that never ends is cut', async (t) => {
  const { client } = await serve(t)
  const socket = await client.socket(`${head}Transfer-Encoding: chunked\r\n\r\n`)
  let answer = ''
  let closed = false
  let sentBefore = 0
  socket.on('data', (data) => {
    answer += data.toString()
    sentBefore = sent
  })
  socket.on('close', () => {
    closed = true
  })
  const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
  let sent = 0
  await until(() => {
    if (socket.writable && socket.writableLength === 0) {
      sent++
      socket.write(chunk)
    }
    return closed
  })
  t.match(answer, /^HTTP\/1\.1 413 .*Connection: close.*"PAYLOAD_TOO_LARGE"/s)
  t.ok(sentBefore < sent, 'the answer came while it was sending')
})

t.test('a client that has sent all of a refused body before it reads sees the answer', async (t) => {
  const { client } = await serve(t)
  const socket = await client.socket(`${head}Transfer-Encoding: chunked\r\n\r\n`)
  socket.pause()
  const chunk = Buffer.from(`100000\r\n${'x'.repeat(0x100000)}\r\n`)
  for (let i = 0; i < 100; i++)
    await new Promise<void>((resolve, reject) => socket.write(chunk, (e) => (e ? reject(e) : resolve())))
  socket.write('0\r\n\r\n')
  const answer = await new Promise<string>((resolve) => {
    let text = ''
    socket.on('data', (data) => {
      text += data.toString()
      if (isLast(text)) resolve(text)
    })
    socket.resume()
  })
  t.match(answer, /^HTTP\/1\.1 413 .*"PAYLOAD_TOO_LARGE"/s)
  socket.destroy()
})

t.test('a refused client that falls silent, then ends its body, harms nobody', async (t) => {
  const { client } = await serve(t)
  const socket = await client.socket(`${head}Transfer-Encoding: chunked\r\n\r\n20000\r\n${'x'.repeat(0x20000)}\r\n`)
  let answer = ''
  socket.on('data', (data) => {
    answer += data.toString()
  })
  await until(() => isLast(answer))
  t.match(answer, /^HTTP\/1\.1 413 .*"PAYLOAD_TOO_LARGE"/s)
  socket.write('3\r\nabc\r\n0\r\n\r\n')
  socket.write('GET /api/status HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\n\r\n')
  await until(() => answer.includes('"ok":true'))
  socket.destroy()
})

t.test('a chunked body within the limit is taken', async (t) => {
  const { client } = await serve(t)
  const answer = await client.raw(`${head}Transfer-Encoding: chunked\r\n\r\n5\r\n{"fps\r\n5\r\n":30}\r\n0\r\n\r\n`, /30\}/)
  t.match(answer, /^HTTP\/1\.1 200 .*\{"id":1,"fps":30\}/s)
})

t.test('a slow body is cut at the deadline', async (t) => {
  const { client } = await serve(t, { limits: { bodyDeadlineMs: 50 } })
  const answer = await client.raw(`${head}Content-Length: 10\r\n\r\n{"fps"`)
  t.match(answer, /^HTTP\/1\.1 400 .*Connection: close.*took too long/s)
})

t.test('bodies on their way are counted', async (t) => {
  const { client } = await serve(t, { limits: { bodiesAtOnce: 2 } })
  const slow = [
    await client.socket(`${head}Content-Length: 10\r\n\r\n{`),
    await client.socket(`${head}Content-Length: 10\r\n\r\n{`),
  ]
  await until(async () => (await client.put('/api/things/1', '{"fps":30}')).status === 503)
  for (const socket of slow) socket.destroy()
  await until(async () => (await client.put('/api/things/1', '{"fps":30}')).status === 200)
  t.pass('the places are free again')
})

t.test('clients that go away', async (t) => {
  const seen = new Seen()
  const { client, server } = await serve(t, { seen })
  const upload = await client.socket(`${head}Content-Length: 10\r\n\r\n{`)
  await until(() => server.load.requests === 1)
  upload.destroy()
  await until(() => server.load.requests === 0)
  const waiting = await client.socket('GET /api/wait HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer late-admin\r\n\r\n')
  await until(() => seen.calls === 1)
  waiting.destroy()
  await until(() => seen.aborts === 1)
  t.equal(server.load.requests, 0)
  t.equal((await client.fetch('/api/status')).status, 200)
})

t.test('keep-alive goes on after refused small bodies, and pipelined requests are answered in order', async (t) => {
  const { client } = await serve(t)
  const refused = 'PUT /api/things/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789'
  const status = 'GET /api/status HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\n\r\n'
  const answer = await client.raw(refused + status, /"ok":true/)
  t.match(answer, /^HTTP\/1\.1 401 .*HTTP\/1\.1 200 /s)
})
