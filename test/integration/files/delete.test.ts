import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
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
