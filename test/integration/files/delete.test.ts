import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { memoryDisk } from '../../support/scratch.ts'
import { until } from '../http/harness.ts'
import { serveFiles } from './harness.ts'

t.test('files go with their catalogue entry, folders only when that is meant', async (t) => {
  const { client, root, recordings, scratch, events } = await serveFiles(t)
  const remove = async (path: string, as = 'operator') => {
    const { status, body } = await client.json(`/files/${path}`, { method: 'DELETE', as })
    return status === 200 ? 'ok' : `${status} ${body.error.code}`
  }
  mkdirSync(join(root, 'day/inner'), { recursive: true })
  for (const name of ['plain', 'rec.mp4', 'live.mp4', 'day/a.mp4', 'day/inner/b']) writeFileSync(join(root, name), name)
  mkdirSync(join(scratch, 'outside'))
  writeFileSync(join(scratch, 'outside/kept'), 'kept')
  symlinkSync(join(scratch, 'outside'), join(root, 'day/link'))
  symlinkSync(join(scratch, 'outside/kept'), join(root, 'day/file-link'))
  symlinkSync('day', join(root, 'loop'))
  execFileSync('mkfifo', [join(root, 'day/fifo')])
  writeFileSync(Buffer.concat([Buffer.from(`${root}/day/`), Buffer.from([0x66, 0xff, 0xfe])]), 'no text')
  const socket = createServer().listen(join(root, 'day/socket'))
  t.teardown(() => socket.close())
  recordings.rows.set('/media/data/rec.mp4', { id: 1, camera: 0, state: 'ready' })
  recordings.rows.set('/media/data/live.mp4', { id: 2, camera: 0, state: 'recording' })
  recordings.rows.set('/media/data/day/a.mp4', { id: 3, camera: 0, state: 'ready' })

  t.equal(await remove('plain', 'viewer'), '403 PERMISSION_DENIED')
  t.equal(await remove('plain'), 'ok')
  t.equal(await remove('plain'), '404 FILE_NOT_FOUND')
  t.equal(await remove('rec.mp4'), 'ok')
  t.match(events.at(-1), { type: 'deleted', data: { camera: 0 } }, 'told only to those who may see the camera')
  t.same(recordings.forgotten, ['/media/data/rec.mp4'])
  t.equal(await remove('live.mp4'), '409 RECORDING_IN_PROGRESS')
  t.equal((await client.json('/files/live.mp4')).status, 409, 'what is being written is not served')
  t.equal(await remove('day/link'), '404 FILE_NOT_FOUND')
  t.equal(await remove('loop?recursive=true'), '404 FILE_NOT_FOUND')
  t.equal(await remove('day/link/kept'), '404 FILE_NOT_FOUND')
  t.equal(await remove('day/fifo'), '404 FILE_NOT_FOUND')
  t.equal(await remove('day'), '400 INVALID_REQUEST')
  t.equal(await remove('media/data?recursive=true'), '400 INVALID_REQUEST')
  t.equal(await remove('.uploads?recursive=true'), '400 INVALID_REQUEST')

  writeFileSync(join(root, 'day/inner/live.mp4'), '')
  recordings.rows.set('/media/data/day/inner/live.mp4', { id: 4, camera: 0, state: 'recording' })
  for (let i = 0; i < 1500; i++) writeFileSync(join(root, `day/inner/${i}`), '')
  const before = readdirSync(join(root, 'day'))
  t.equal(await remove('day?recursive=true'), '409 RECORDING_IN_PROGRESS')
  t.same(readdirSync(join(root, 'day')), before, 'nothing was deleted before')
  recordings.rows.set('/media/data/day/inner/live.mp4', { id: 4, camera: 0, state: 'ready' })
  t.equal(await remove('day?recursive=true'), 'ok')
  t.notOk(existsSync(join(root, 'day')))
  t.same(recordings.forgotten.slice(1).sort(), ['/media/data/day/a.mp4', '/media/data/day/inner/live.mp4'])
  t.equal(readFileSync(join(scratch, 'outside/kept'), 'utf8'), 'kept', 'links go, not what they point to')
  t.match(events.at(-1), { category: 'file', type: 'deleted', data: { path: '/media/data/day', recursive: true } })
})

t.test('a large delete lets others have their turn, and ends when its client has gone', async (t) => {
  const { client, server, root, recordings, upload } = await serveFiles(t, { root: join(memoryDisk(t, '256m'), 'media') })
  let gone = 0
  recordings.forgetFile = () => {
    gone++
  }
  const fill = (count: number) => {
    gone = 0
    mkdirSync(join(root, 'large/inner'), { recursive: true })
    for (let i = 0; i < count; i++) writeFileSync(join(root, `large/inner/${i}`), '')
  }
  fill(6000)
  let deleted = false
  const remove = client.json('/files/large?recursive=true', { method: 'DELETE' }).then(({ status }) => {
    deleted = true
    return status
  })
  await until(() => gone > 0)
  t.equal((await upload([['file', 'x', 'beside']])).status, 200)
  t.notOk(deleted, 'the upload did not wait for the end')
  t.equal(await remove, 200)
  t.notOk(existsSync(join(root, 'large')))

  fill(6000)
  const socket = await client.socket(
    'DELETE /files/large?recursive=true HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer operator\r\n\r\n',
  )
  await until(() => gone > 0)
  socket.destroy()
  await until(() => server.load.requests === 0)
  // In the turn behind the batch that was under way.
  t.equal((await client.json('/files/beside', { method: 'DELETE' })).status, 200)
  const left = readdirSync(join(root, 'large/inner')).length
  t.ok(left > 0, `${left} are left`)
  t.equal((await upload([['file', 'x', 'after']])).status, 200)
  t.equal(readdirSync(join(root, 'large/inner')).length, left, 'no more go')
})

t.test('uploads into a folder that is being deleted: whole before or after, or refused', async (t) => {
  const { client, root, upload } = await serveFiles(t)
  for (let round = 0; round < 10; round++) {
    mkdirSync(join(root, 'busy/a/b'), { recursive: true })
    for (let i = 0; i < 150; i++) writeFileSync(join(root, `busy/a/b/${i}`), '')
    const put = (name: string) =>
      upload([
        ['file', name, name],
        ['path', 'busy/a/b'],
      ])
    const remove = () => client.json('/files/busy?recursive=true', { method: 'DELETE' })
    const [first, second, ...puts] = await Promise.all([remove(), remove(), put(`x${round}`), put(`y${round}`), put(`z${round}`)])
    for (const { status } of [first, second]) if (![200, 404, 409].includes(status)) t.fail(`delete: ${status}`)
    for (const { status } of puts) if (status !== 200) t.fail(`upload: ${status}`)
  }
  t.same(readdirSync(join(root, '.uploads')), [])
})

t.test('a file that the server may not read', async (t) => {
  const { client, root, scratch } = await serveFiles(t)
  writeFileSync(join(root, 'secret'), 'x', { mode: 0o600 })
  for (const path of [scratch, root]) chmodSync(path, 0o755)
  process.seteuid?.(65534)
  try {
    t.match(await client.json('/files/secret'), { status: 403, body: { error: { code: 'PERMISSION_DENIED', details: 'file' } } })
  } finally {
    process.seteuid?.(0)
  }
})

t.test('downloads: by range, as attachment or in the browser', async (t) => {
  const { client, root } = await serveFiles(t)
  mkdirSync(join(root, 'a b'))
  const bytes = Buffer.from(Array.from({ length: 900_000 }, (_, index) => (index * 7) % 253))
  for (const name of ['a b/clip.mp4', 'page.html', 'Bild ü.png', 'noext']) writeFileSync(join(root, name), bytes)
  const get = (path: string, headers: Record<string, string> = {}) => client.fetch(path, { as: 'viewer', headers })
  const whole = await get('/files/a%20b/clip.mp4')
  t.ok(bytes.equals(Buffer.from(await whole.arrayBuffer())))
  t.equal(whole.headers.get('content-type'), 'video/mp4')
  t.equal(whole.headers.get('content-disposition'), 'inline; filename="clip.mp4"')
  const part = await get('/download/media/data/a%20b/clip.mp4', { range: 'bytes=300000-800000' })
  t.equal(part.status, 206)
  t.equal(part.headers.get('content-disposition'), 'attachment; filename="clip.mp4"')
  t.ok(bytes.subarray(300_000, 800_001).equals(Buffer.from(await part.arrayBuffer())))
  const again = await get('/files/a%20b/clip.mp4', { 'if-none-match': whole.headers.get('etag') ?? '' })
  t.equal(again.status, 304)
  t.equal((await get('/files/a%20b/clip.mp4', { 'if-modified-since': whole.headers.get('last-modified') ?? '' })).status, 304)
  for (const [path, type, disposition] of [
    ['/files/page.html', 'text/html', /^attachment/],
    ['/files/Bild%20%C3%BC.png', 'image/png', /^inline; filename="Bild _.png"; filename\*=UTF-8''Bild%20%C3%BC.png$/],
    ['/files/noext', 'application/octet-stream', /^attachment/],
  ] as const) {
    const answer = await client.fetch(path, { method: 'HEAD' })
    t.match(Object.fromEntries(answer.headers), {
      'content-type': type,
      'content-disposition': disposition,
      'content-length': '900000',
    })
  }
  t.match(await client.json('/files/a%20b'), { status: 400, body: { error: { details: 'params.filepath' } } })
})
