import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { memoryDisk } from '../../support/scratch.ts'
import { filesOn, serveFiles } from './harness.ts'

t.test('both forms, recursive, filtered, in pages with the totals of all', async (t) => {
  const { client, root } = await serveFiles(t)
  mkdirSync(join(root, 'b/deep'), { recursive: true })
  mkdirSync(join(root, 'b-side'))
  for (const [name, size] of Object.entries({ 'a.AVI': 10, 'b/c.avi': 20, 'b/deep/d.txt': 30, 'b-side/e': 40, z: 50 })) {
    writeFileSync(join(root, name), Buffer.alloc(size))
  }
  symlinkSync('/etc', join(root, 'etc'))
  execFileSync('mkfifo', [join(root, 'fifo')])
  const names = (body: { files: { name: string }[] }) => body.files.map(({ name }) => name)

  const flat = (await client.json('/files', { as: 'viewer' })).body
  t.match(flat, { path: '/media/data', total_size: 60, file_count: 2, directory_count: 2, total: 4, truncated: false })
  t.same(names(flat), ['a.AVI', 'b', 'b-side', 'z'])
  const [avi, folder] = flat.files
  t.match(avi, { type: 'file', size: 10, mime_type: 'video/x-msvideo', path: '/media/data/a.AVI', modified: /^20\d\d-.*Z$/ })
  t.match(folder, { type: 'directory', size: undefined, mime_type: undefined })

  const all = (await client.json('/api/files?directory=/media/data&recursive=true')).body
  t.same(names(all), ['a.AVI', 'b', 'b/c.avi', 'b/deep', 'b/deep/d.txt', 'b-side', 'b-side/e', 'z'])
  t.match(all, { total_size: 150, file_count: 5, directory_count: 3, total: 8 })
  const page = (await client.json('/files?recursive=true&limit=3&offset=2')).body
  t.same(names(page), ['b/c.avi', 'b/deep', 'b/deep/d.txt'])
  t.match(page, { total_size: 150, file_count: 5, directory_count: 3, total: 8, limit: 3, offset: 2 })

  for (const filter of ['.avi', 'avi', 'AVI']) {
    const found = (await client.json(`/files?recursive=true&filter=${filter}`)).body
    t.same(names(found), ['a.AVI', 'b/c.avi'])
    t.match(found, { total_size: 30, file_count: 2, directory_count: 0 })
  }
  t.match((await client.json('/api/v1/files?directory=b')).body, { status: 'success', data: { path: '/media/data/b', total: 2 } })
  for (const [query, status] of [
    ['path=none', 404],
    ['path=z', 404],
    ['path=etc', 404],
    ['path=..', 400],
    ['path=/etc', 400],
    ['filter=a/b', 400],
    ['limit=0', 400],
    ['directory=b', 400],
  ] as const) {
    t.equal((await client.json(`/files?${query}`)).status, status, query)
  }
  t.equal((await client.json('/files', { as: 'guest' })).status, 403)
})

t.test('who is limited to some cameras sees and reads no recording of others', async (t) => {
  const { client, root, recordings } = await serveFiles(t)
  for (const name of ['zero.mp4', 'one.mp4', 'plain']) writeFileSync(join(root, name), name)
  recordings.rows.set('/media/data/zero.mp4', { id: 1, camera: 0, state: 'ready' })
  recordings.rows.set('/media/data/one.mp4', { id: 2, camera: 1, state: 'ready' })
  const { body } = await client.json('/files', { as: 'viewer-1' })
  t.match(body, { file_count: 2, total_size: 12 })
  t.equal((await client.fetch('/files/one.mp4', { as: 'viewer-1' })).status, 200)
  t.match(await client.json('/files/zero.mp4', { as: 'viewer-1' }), {
    status: 403,
    body: { error: { code: 'PERMISSION_DENIED' } },
  })
  t.equal((await client.json('/files/zero.mp4', { method: 'DELETE', as: 'operator-1' })).status, 403)
  mkdirSync(join(root, 'day'))
  writeFileSync(join(root, 'day/a'), '')
  writeFileSync(join(root, 'day/two.mp4'), '')
  recordings.rows.set('/media/data/day/two.mp4', { id: 3, camera: 0, state: 'ready' })
  t.equal((await client.json('/files/day?recursive=true', { method: 'DELETE', as: 'operator-1' })).status, 403)
  t.same(readdirSync(join(root, 'day')), ['a', 'two.mp4'], 'nothing was deleted before')
})

t.test('a folder of many entries is counted without holding up the event loop', async (t) => {
  const { files, root } = await filesOn(t)
  const many = 3000
  for (let i = 0; i < many; i++) writeFileSync(join(root, `f${i}`), '')
  // A clock would measure the machine: what counts is that others get their turn between.
  let turns = 0
  let counting = setImmediate(function count() {
    turns++
    counting = setImmediate(count)
  })
  const listing = await files.list({ cameras: null }, '', 'path', { recursive: true, limit: 10, offset: many - 10 })
  clearImmediate(counting)
  t.match(listing, { file_count: many, total: many, truncated: false })
  t.equal(listing.files.length, 10)
  t.ok(turns >= many / 100, `${turns} turns of the event loop`)
})

t.test('a time that no date can say does not spoil its folder', async (t) => {
  const { client, root } = await serveFiles(t, { root: join(memoryDisk(t, '1m'), 'media') })
  writeFileSync(join(root, 'late'), '')
  execFileSync('touch', ['-d', '@9000000000000', join(root, 'late')])
  const { status, body } = await client.json('/files')
  t.equal(status, 200)
  t.equal(body.files[0].modified, '9999-12-31T23:59:59.999Z')
  t.equal((await client.fetch('/files/late')).headers.get('last-modified'), 'Fri, 31 Dec 9999 23:59:59 GMT')
})
