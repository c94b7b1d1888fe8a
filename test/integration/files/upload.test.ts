import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { memoryDisk } from '../../support/scratch.ts'
import { until } from '../http/harness.ts'
import { FORM_TYPE, form, type Part, serveFiles } from './harness.ts'

const MB = 1024 * 1024
const leftovers = (root: string) => readdirSync(join(root, '.uploads'))

t.test('the parts in any order, whole and exact', async (t) => {
  const { upload, root, events } = await serveFiles(t)
  const bytes = randomBytes(3 * MB + 17)
  const answer = { success: true, filename: 'a.mp4', size: bytes.length }
  const first = await upload([
    ['path', 'clips/new'],
    ['overwrite', 'false'],
    ['file', bytes, 'a.mp4'],
  ])
  t.equal(first.status, 200)
  t.same(first.body, { ...answer, path: '/media/data/clips/new/a.mp4' })
  const last = await upload([
    ['file', bytes, 'a.mp4'],
    ['overwrite', 'true'],
    ['path', '/media/data/clips'],
  ])
  t.same(last.body, { ...answer, path: '/media/data/clips/a.mp4' })
  t.same((await upload([['file', '', 'empty']])).body, { success: true, filename: 'empty', path: '/media/data/empty', size: 0 })
  for (const path of ['clips/new/a.mp4', 'clips/a.mp4']) t.ok(bytes.equals(readFileSync(join(root, path))), path)
  t.same(leftovers(root), [])
  t.match(events[0], { category: 'file', type: 'uploaded', actor: { username: 'operator' }, data: { path: first.body.path } })

  // The boundary's beginning again and again, over chunks of every size.
  const tricky = Buffer.from('\r\n------camera-test-1f4\r\n--'.repeat(50_000))
  t.equal((await upload([['file', tricky, 'tricky']])).status, 200)
  t.ok(tricky.equals(readFileSync(join(root, 'tricky'))))
  const decomposed = await upload([['file', 'x', 'u\u0308.txt']])
  const quoted = await upload([['file', 'x', 'a%22b%25 %22%2e']])
  t.equal(quoted.body.filename, 'a"b%25 "%2e', 'as browsers write it')
  t.match(await upload([['file', 'x', 'a%0D%0Ab']]), { status: 400, body: { error: { details: 'body.file' } } })
  t.equal(decomposed.body.filename, '\u00fc.txt', 'one spelling of a name')
})

t.test('what exists is replaced only where that is asked for, and never a folder or a recording', async (t) => {
  const { upload, root, recordings, scratch } = await serveFiles(t)
  writeFileSync(join(scratch, 'outside'), 'outside')
  mkdirSync(join(root, 'folder'))
  symlinkSync('../outside', join(root, 'link'))
  for (const name of ['plain', 'rec.mp4', 'live.mp4']) writeFileSync(join(root, name), 'old')
  recordings.rows.set('/media/data/rec.mp4', { id: 1, camera: 0, state: 'ready' })
  recordings.rows.set('/media/data/live.mp4', { id: 2, camera: 0, state: 'recording' })
  const put = async (name: string, overwrite: boolean, path = '') => {
    const { status, body } = await upload([
      ['file', 'new', name],
      ['overwrite', String(overwrite)],
      ['path', path],
    ])
    return status === 200 ? 'ok' : `${status} ${body.error.code}`
  }
  t.equal(await put('plain', false), '409 CONFLICT')
  t.equal(readFileSync(join(root, 'plain'), 'utf8'), 'old')
  t.equal(await put('plain', true), 'ok')
  t.equal(readFileSync(join(root, 'plain'), 'utf8'), 'new')
  t.equal(await put('folder', true), '409 CONFLICT')
  t.equal(await put('rec.mp4', true), '409 CONFLICT')
  t.equal(await put('live.mp4', true), '409 RECORDING_IN_PROGRESS')
  t.equal(await put('live.part2.mp4', false), '409 RECORDING_IN_PROGRESS', 'its next part needs the name')
  t.equal(await put('link', true), '409 CONFLICT', 'a link is not written through')
  t.equal(await put('x', true, 'link'), '409 CONFLICT')
  t.equal(await put('x', true, 'plain/sub'), '409 CONFLICT', 'a file is no folder')
  t.equal(readFileSync(join(scratch, 'outside'), 'utf8'), 'outside')
  t.same(leftovers(root), [])
})

t.test('forms that are none are refused by the name of the field', async (t) => {
  const { upload, client, root } = await serveFiles(t)
  const refused = async (parts: Parameters<typeof upload>[0], field: string) => {
    const { status, body } = await upload(parts)
    t.match({ status, body }, { status: 400, body: { error: { code: 'INVALID_REQUEST', details: field } } }, field)
  }
  await refused([['path', 'a']], 'body.file')
  await refused([['file', 'text without a name']], 'body.file')
  await refused([['other', 'x', 'a.txt']], 'body.other')
  await refused(
    [
      ['file', 'x', 'a'],
      ['colour', 'red'],
    ],
    'body.colour',
  )
  await refused(
    [
      ['file', 'x', 'a'],
      ['overwrite', 'yes'],
    ],
    'body.overwrite',
  )
  await refused(
    [
      ['path', 'a'],
      ['path', 'b'],
      ['file', 'x', 'a'],
    ],
    'body.path',
  )
  await refused(
    [
      ['file', 'x', 'a'],
      ['path', '../up'],
    ],
    'body.path',
  )
  await refused(
    [
      ['file', 'x', 'a'],
      ['path', '/etc'],
    ],
    'body.path',
  )
  await refused([['file', 'x', '../a']], 'body.file')
  await refused([['file', 'x', '.uploads']], 'body.file')
  await refused(
    [
      ['file', 'x', 'a'],
      ['file', 'y', 'b'],
    ],
    'body',
  )
  await refused(
    [
      ['path', 'x'.repeat(9000)],
      ['file', 'x', 'a'],
    ],
    'body.path',
  )
  await refused(
    Array.from({ length: 20 }, (_, i) => [`f${i}`, 'x'] as const),
    'body',
  )
  const raw = (body: string | Buffer, type: string) =>
    client.json('/upload', {
      method: 'POST',
      body: new Uint8Array(Buffer.from(body as string)),
      headers: { 'content-type': type },
    })
  const whole = form([['file', randomBytes(20_000), 'a']])
  t.match(await raw('{}', 'application/json'), { status: 400, body: { error: { details: 'content-type' } } })
  t.match(await raw(whole, 'multipart/form-data'), { status: 400, body: { error: { details: 'content-type' } } })
  t.match(await raw(whole, 'multipart/form-data; boundary=other'), { status: 400, body: { error: { details: 'body' } } })
  const part = (head: string, content: string) => `--B\r\n${head}\r\n\r\n${content}\r\n--B--\r\n`
  const nameless: [string, string, string][] = [
    ['Content-Disposition: form-data; name="file"\r\nContent-Type: application/octet-stream', 'x', 'body.file'],
    ['Content-Disposition: form-data; filename="a"', 'x', 'body.'],
    ['Content-Disposition: form-data', 'x', 'body.'],
    ['Content-Disposition: form-data', 'x'.repeat(9000), 'body.'],
  ]
  for (const [head, content, details] of nameless) {
    const answer = await raw(part(head, content), 'multipart/form-data; boundary=B')
    t.match(answer, { status: 400, body: { error: { details } } }, `${head}, ${content.length} bytes`)
  }
  for (let cut = 0; cut < whole.length; cut += cut < 200 || cut > 20_100 ? 7 : 2003) {
    const { status } = await raw(whole.subarray(0, cut), FORM_TYPE)
    if (status !== 400) t.fail(`cut at ${cut}: ${status}`)
  }
  t.same(readdirSync(root), ['.uploads'])
  t.same(leftovers(root), [])
})

t.test('roles come first, then the length, before a byte is taken', async (t) => {
  const { client, root, upload, limits } = await serveFiles(t, { limits: { maxUploadBytes: MB } })
  const head = (as: string, length: number) =>
    `POST /upload HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${as}\r\nContent-Type: ${FORM_TYPE}\r\nContent-Length: ${length}\r\n\r\n`
  t.match(await client.raw(head('viewer', 10 * MB)), /^HTTP\/1.1 403 /)
  t.match(await client.raw(head('operator', 10 * MB)), /^HTTP\/1.1 413 [\s\S]*PAYLOAD_TOO_LARGE/)
  // Who sends all the same must not see a broken connection instead.
  const large: Part[] = [['file', Buffer.alloc(20 * MB), 'large']]
  t.match(await upload(large, ''), { status: 401, body: { error: { code: 'INVALID_CREDENTIALS' } } })
  t.match(await upload(large, 'viewer'), { status: 403, body: { error: { code: 'PERMISSION_DENIED' } } })
  t.match(await upload(large), { status: 413, body: { error: { code: 'PAYLOAD_TOO_LARGE' } } })
  t.equal((await upload([['file', Buffer.alloc(MB), 'just']])).status, 200)
  t.match(await upload([['file', Buffer.alloc(MB + 1), 'over']]), { status: 413, body: { error: { code: 'PAYLOAD_TOO_LARGE' } } })
  limits.maxUploadBytes = 2 * MB
  t.equal((await upload([['file', Buffer.alloc(MB + 1), 'over']])).status, 200, 'a change of the limit acts at once')
  t.same(readdirSync(root).sort(), ['.uploads', 'just', 'over'])
})

t.test('the quota counts what is there and what is on its way', async (t) => {
  const { upload, root, limits } = await serveFiles(t, { limits: { quotaBytes: 3 * MB } })
  mkdirSync(join(root, 'recordings'))
  writeFileSync(join(root, 'recordings/a.mp4'), Buffer.alloc(MB))
  const put = (name: string) => upload([['file', Buffer.alloc(0.9 * MB), name]])
  t.same((await Promise.all(['a', 'b', 'c'].map(put))).map(({ status }) => status).sort(), [200, 200, 503])
  t.match(await put('d'), { status: 503, body: { error: { code: 'INSUFFICIENT_STORAGE' } } })
  limits.quotaBytes = 0
  t.equal((await put('d')).status, 200)
  t.same(leftovers(root), [])
})

t.test('a file that replaces another one counts once', async (t) => {
  const { upload, limits } = await serveFiles(t, { limits: { quotaBytes: 3 * MB } })
  const put = (size: number) =>
    upload([
      ['overwrite', 'true'],
      ['file', Buffer.alloc(size), 'same'],
    ])
  for (let round = 0; round < 5; round++) t.equal((await put(0.9 * MB)).status, 200, `round ${round}`)
  t.equal((await put(2 * MB)).status, 200)
  limits.quotaBytes = 2.5 * MB
  t.equal((await put(0.9 * MB)).status, 503, 'the larger one counts as what it is')
})

t.test('a connection that is cut leaves nothing, and a client that stalls is cut', async (t) => {
  const { client, root, server } = await serveFiles(t, { http: { limits: { uploadStallMs: 150 } } })
  const body = form([['file', Buffer.alloc(4 * MB), 'cut']])
  const head = `POST /upload HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer operator\r\nContent-Type: ${FORM_TYPE}\r\nContent-Length: ${body.length}\r\n\r\n`
  const socket = await client.socket(head)
  socket.write(body.subarray(0, 2 * MB))
  await until(() => leftovers(root).length === 1 && statSync(join(root, '.uploads', leftovers(root)[0] ?? '')).size > MB)
  socket.destroy()
  await until(() => server.load.requests === 0 && leftovers(root).length === 0)

  const stalled = client.raw(head + body.subarray(0, 1000).toString('latin1'))
  t.match(await stalled, /^HTTP\/1.1 400 [\s\S]*took too long/)
  await until(() => leftovers(root).length === 0)
  t.same(readdirSync(root), ['.uploads'])
})

t.test('uploads at once are bounded, of one client and in all', async (t) => {
  const { client, server, upload } = await serveFiles(t, { http: { limits: { uploadsPerClient: 2 } } })
  const body = form([['file', Buffer.alloc(1000), 'slow']])
  const head = `POST /upload HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer operator\r\nContent-Type: ${FORM_TYPE}\r\nContent-Length: ${body.length}\r\n\r\n`
  const open = [await client.socket(head), await client.socket(head)]
  await until(() => server.load.requests === 2)
  t.match(await upload([['file', 'x', 'third']]), { status: 503, body: { error: { code: 'SERVICE_UNAVAILABLE' } } })
  for (const socket of open) socket.destroy()
  await until(() => server.load.requests === 0)
  t.equal((await upload([['file', 'x', 'third']])).status, 200)
})

t.test('of many uploads of one name at once exactly one wins', async (t) => {
  const { upload, root } = await serveFiles(t, { http: { limits: { uploadsPerClient: 8 } } })
  const contents = Array.from({ length: 8 }, () => randomBytes(300_000))
  const answers = await Promise.all(
    contents.map((bytes) =>
      upload([
        ['file', bytes, 'same'],
        ['path', 'deep/er'],
      ]),
    ),
  )
  const won = answers.flatMap(({ status }, index) => (status === 200 ? [index] : []))
  t.equal(won.length, 1)
  t.same(
    answers.map(({ status }) => status).filter((status) => status !== 200),
    Array.from({ length: 7 }, () => 409),
  )
  const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
  t.equal(hash(readFileSync(join(root, 'deep/er/same'))), hash(contents[won[0] ?? 0] ?? Buffer.alloc(0)))
  t.same(leftovers(root), [])
})

t.test('a slow writer and one that sends in chunks of unknown length', async (t) => {
  const { client, root } = await serveFiles(t)
  const body = form([
    ['file', 'dripping', 'drip'],
    ['path', 'x'],
  ])
  const socket = await client.socket(
    `POST /upload HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer operator\r\nContent-Type: ${FORM_TYPE}\r\nTransfer-Encoding: chunked\r\n\r\n`,
  )
  let answer = ''
  socket.on('data', (data) => {
    answer += data.toString('latin1')
  })
  for (const byte of body) {
    socket.write(`1\r\n${String.fromCharCode(byte)}\r\n`, 'latin1')
    await new Promise((resolve) => setImmediate(resolve))
  }
  socket.write('0\r\n\r\n')
  await until(() => answer.includes('"size":8'))
  // The connection is good for another request.
  answer = ''
  socket.write('GET /files?path=x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer viewer\r\n\r\n')
  await until(() => answer.includes('drip'))
  socket.destroy()
  t.equal(readFileSync(join(root, 'x/drip'), 'utf8'), 'dripping')
})

t.test('a disk without room: refused before, and broken off when it fills up meanwhile', async (t) => {
  const { upload, client, root } = await serveFiles(t, {
    root: join(memoryDisk(t, '160m'), 'media'),
    limits: { maxUploadBytes: 1024 * MB },
  })
  t.match(await upload([['file', Buffer.alloc(100 * MB), 'large']]), {
    status: 503,
    body: { error: { code: 'INSUFFICIENT_STORAGE' } },
  })
  t.equal((await upload([['file', Buffer.alloc(40 * MB), 'fits']])).status, 200)
  // Without an announced length nothing is known before.
  const body = new Blob([new Uint8Array(form([['file', Buffer.alloc(90 * MB), 'unknown']]))]).stream()
  const init = { method: 'POST', body, duplex: 'half', headers: { 'content-type': FORM_TYPE } } as RequestInit
  const status = await client.json('/upload', { ...init, as: 'operator' }).then(
    (answer) => answer.status,
    () => 'cut',
  )
  t.ok(status === 503 || status === 'cut', `answered ${status}`)
  await until(() => leftovers(root).length === 0)
  t.same(readdirSync(root).sort(), ['.uploads', 'fits'])
})
