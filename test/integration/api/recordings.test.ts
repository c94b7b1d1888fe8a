import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { Catalogue, type MediaType, type NewRow } from '../../../app/server/recording/index.ts'
import { Store } from '../../../app/server/store/index.ts'
import { type Api, login, until } from '../../support/api.ts'
import { scratchFolder } from '../../support/scratch.ts'
import { startQuickServer } from '../../support/server.ts'

const HOUR = 3_600_000
/** Lately: what is old, retention takes. */
const BEGINNING = (Math.floor(Date.now() / HOUR) - 20) * HOUR
const PASSWORD = 'Battery-Staple-7'

/** A data folder with entries from an earlier life: one each hour, of two cameras in turn; number 3 has two parts. */
async function dataFolder(t: Test): Promise<string> {
  const data = join(scratchFolder(t, 'recordings'), 'data')
  const store = new Store(join(data, 'db'), pino({ level: 'silent' }))
  await store.start()
  const catalogue = new Catalogue(store)
  const add = (n: number, media_type: MediaType, more: Partial<NewRow> = {}) => {
    const part = (filename: string, duration: number) => {
      const path = `/media/data/recordings/${filename}`
      const host = join(data, 'media/recordings', filename)
      mkdirSync(dirname(host), { recursive: true })
      writeFileSync(host, `${filename} 0123456789`)
      return { filename, path, duration, size: 20 + n, sha256: null }
    }
    const parts = n === 3 ? [part('r3.mp4', 1000), part('r3.part2.mp4', 2000)] : [part(`r${n}.mp4`, 3000)]
    const { filename = '', path = '' } = parts[0] ?? {}
    const place = { filename, path, parts, size: 20 + n, camera: n % 2, timestamp_start: BEGINNING + n * HOUR, duration: 3000 }
    catalogue.addMedia({ media_type, encoding: 'mp4', video_codec: 'h264', ...place, ...more })
  }
  for (let n = 1; n <= 6; n++) add(n, n === 5 ? 'timelapse' : 'video')
  add(7, 'image', { encoding: 'png' })
  add(8, 'video', { state: 'defect' })
  await store.stop()
  return data
}

async function ids(api: Api, query: string): Promise<number[]> {
  const { status, body } = await api.get(`/api/recordings${query}`)
  if (status !== 200) throw new Error(JSON.stringify(body))
  return (body.recordings as unknown as { id: number }[]).map(({ id }) => id)
}

t.test('the catalogue over HTTP', async (t) => {
  const data = await dataFolder(t)
  const server = await startQuickServer(t, {
    dataDir: data,
    args: ['--camera', 'test:320x240@10', '--camera', 'test:320x240@10', '--rate-limits', 'off'],
  })
  const api = await login(server)
  await api.post('/api/users', { username: 'limited', password: PASSWORD, role: 'operator', cameras: [1] })
  await api.post('/api/users', { username: 'viewer', password: PASSWORD, role: 'viewer' })
  const limited = await login(server, 'limited', PASSWORD)
  const viewer = await login(server, 'viewer', PASSWORD)

  await t.test('filters, order and pages', async (t) => {
    t.same(await ids(api, ''), [8, 6, 5, 4, 3, 2, 1], 'moving pictures, newest first')
    t.same(await ids(api, '?mode=all'), [8, 7, 6, 5, 4, 3, 2, 1])
    t.same(await ids(api, '?mode=image'), [7])
    t.same(await ids(api, '?media_type=timelapse'), [5])
    t.same(await ids(api, '?state=defect'), [8])
    t.same(await ids(api, '?camera=1&sort=oldest'), [1, 3, 5])
    t.same(await ids(api, `?from=${BEGINNING + 2 * HOUR + 3000}&to=${BEGINNING + 4 * HOUR}`), [4, 3, 2], 'what touches the range')
    t.same(await ids(api, '?text=PART2'), [], 'the name is that of the first part')
    t.same(await ids(api, '?text=R3.'), [3])
    t.same(await ids(api, '?sort=largest&limit=2'), [8, 6])
    const page = await api.get('/api/recordings?limit=3&offset=3')
    t.match(page.body, { total: 7, total_exact: true, limit: 3, offset: 3, next_cursor: String })
    t.same(await ids(api, `?limit=3&cursor=${page.body.next_cursor}`), [1])
    t.match(await api.get('/api/recordings?cursor=AAAA'), { status: 400, body: { error: { details: 'query.cursor' } } })
    t.match(await api.get(`/api/recordings?offset=1&cursor=${page.body.next_cursor}`), { status: 400 })
    t.match(await api.get('/api/recordings?mode=film'), { status: 400 })
    t.match((await api.get('/api/v1/recordings?limit=1')).body, {
      status: 'success',
      data: { total: 7, recordings: [{ id: 8 }] },
    })
  })

  await t.test('users limited to cameras see theirs, and the totals are theirs too', async (t) => {
    t.same(await ids(limited, ''), [5, 3, 1])
    t.equal((await limited.get('/api/recordings?limit=1')).body.total, 3)
    t.same(await ids(limited, '?camera=0'), [])
    t.same(await ids(limited, '?text=r'), [5, 3, 1])
    for (const path of ['', '/info', '/tags']) {
      t.equal((await limited.get(`/api/recordings/2${path}`)).status, 403, path)
      t.equal((await limited.bytes(`/api/recordings/1${path}`)).status, 200, path)
    }
    t.equal((await limited.delete('/api/recordings/2')).status, 403)
    const entry = { enabled: true, cron: '0 0 1 1 *', duration_seconds: 5, mode: 'video' }
    const schedules = [0, 1].map((camera) => ({ ...entry, name: `camera ${camera}`, camera }))
    t.equal((await api.put('/api/recording/schedule', { schedules })).status, 200)
    t.match((await limited.get('/api/recording/schedule')).body, { schedules: [{ camera: 1 }], next: [{ name: 'camera 1' }] })
    t.equal(((await api.get('/api/recording/schedule')).body.schedules as unknown as unknown[]).length, 2)
  })

  await t.test('all that is known, and each part', async (t) => {
    const sha256 = createHash('sha256').update('r3.part2.mp4 0123456789').digest('hex')
    // The checksums are made behind the start.
    const known = await until(
      () => viewer.get('/api/recordings/3/info'),
      ({ body }) => JSON.stringify(body).includes(sha256),
      'checksums',
    )
    t.match(known.body, {
      id: 3,
      mediaType: 'video',
      partCount: 2,
      parts: [
        { part: 1, filename: 'r3.mp4', durationMs: 1000 },
        { part: 2, filename: 'r3.part2.mp4', durationMs: 2000, sha256 },
      ],
      videoCodec: 'h264',
      audioCodec: null,
      timeSynced: true,
      createdBy: null,
    })
    const text = async (path: string, headers = {}) => {
      const { status, bytes } = await viewer.bytes(path, headers)
      return [status, bytes.toString()]
    }
    t.same(await text('/api/recordings/3'), [200, 'r3.mp4 0123456789'])
    t.same(await text('/api/recordings/3?part=2', { range: 'bytes=3-7' }), [206, 'part2'])
    t.equal((await viewer.get('/api/recordings/3?part=3')).status, 404)
    t.equal((await viewer.bytes('/api/recordings/7')).headers.get('content-type'), 'image/png')
    const share = await api.post('/api/shares', { kind: 'recording', recording_id: 3, expires_in_seconds: 600 })
    const opened = await fetch(`${server.base}/api/recordings/3?part=2&token=${share.body.token}`)
    t.same([opened.status, await opened.text()], [200, 'r3.part2.mp4 0123456789'])
    const closed = await fetch(`${server.base}/api/recordings/3/info?token=${share.body.token}`)
    t.equal(closed.status, 403)
  })

  await t.test('tags: set, found, changed, removed, told and recorded', async (t) => {
    const socket = new WebSocket(`ws://127.0.0.1:${server.ports.http}/api/v1?token=${api.token}`)
    t.teardown(() => socket.terminate())
    const told: Record<string, unknown>[] = []
    socket.on('message', (text) => told.push(JSON.parse(String(text))))
    await until(
      () => told,
      ([first]) => first !== undefined,
      'the keys',
    )
    t.match(told[0], { tagCategories: [{ id: 1, name: 'event', color: '#1e88e5' }] })
    socket.send(JSON.stringify({ subscribe: ['recording'] }))

    const tag = { category: 'person', title: 'At the gate', timestamp: 500 }
    const set = await api.post('/api/recording/tag', { ...tag, recording_id: '1' })
    t.match(set, { status: 200, body: { success: true, tag: { ...tag, id: 1, category: 2, note: '', createdBy: 'admin' } } })
    t.match(await api.post('/api/recording/tag', { ...tag, recording_id: 1, timestamp: 3001 }), { status: 400 })
    t.match(await api.post('/api/recording/tag', { category: 'person', title: 'x', recording_id: 1 }), {
      status: 400,
      body: { error: { details: 'body.timestamp' } },
    })
    t.match(await api.post('/api/recording/tag', { ...tag, recording_id: 99 }), { status: 404 })
    t.match(await api.post('/api/recording/tag', { ...tag, recording_id: 1, camera: 0 }), { status: 400 })
    t.match(await api.post('/api/recording/tag', { ...tag, category: 'none', recording_id: 1 }), { status: 400 })
    t.match(await limited.post('/api/recording/tag', { ...tag, recording_id: 2 }), { status: 403 })
    t.match(await api.post('/api/recording/tag', tag), { status: 409 }, 'nothing runs')
    t.same(await ids(viewer, '?tag=person'), [1])
    t.same(await ids(viewer, '?tag=gate'), [1])
    t.same(await ids(viewer, '?tagged=true'), [1])
    t.equal((await viewer.get('/api/recordings/1/info')).body.tagMarkers, 1)
    t.match((await viewer.put('/api/recordings/1/tags/1', { title: 'x' })).status, 403)
    t.match(await api.put('/api/recordings/1/tags/1', {}), { status: 400 })
    t.match(await api.put('/api/recordings/1/tags/1', { title: 'Left', category: 'note' }), {
      body: { tag: { id: 1, title: 'Left', category: 5, timestamp: 500 } },
    })
    t.match((await viewer.get('/api/recordings/1/tags')).body, { total: 1, tags: [{ title: 'Left' }] })
    t.match(await api.delete('/api/recordings/2/tags/1'), { status: 404 })
    t.match(await api.delete('/api/recordings/1/tags/1'), { status: 200 })
    t.match((await viewer.get('/api/recordings/1/tags')).body, { total: 0 })
    const types = () => told.flatMap(({ event }) => (event as { type: string } | undefined)?.type ?? [])
    await until(types, (seen) => seen.length === 3, 'the events')
    t.same(types(), ['tagged', 'tag_changed', 'untagged'])
    const audit = await api.get('/api/audit?action=recording&username=admin')
    t.match(audit.body.entries, [
      { action: 'recording.untagged' },
      { action: 'recording.tag_changed' },
      { action: 'recording.tagged' },
    ])
    t.equal(audit.body.total, 3)
    t.match((await api.get('/api/audit?action=recording&username=admin&limit=1&offset=1')).body, {
      total: 3,
      entries: [{ action: 'recording.tag_changed' }],
    })

    socket.send(JSON.stringify({ tagCategories: [] }))
    await until(
      () => told.find((message) => 'error' in message),
      (error) => error !== undefined,
      'the refusal',
    )
    t.match(
      told.find((message) => 'error' in message),
      { error: { code: 'PERMISSION_DENIED' } },
    )
    t.match(await api.post('/api/settings/tagCategories', []), { status: 403, body: { error: { code: 'PERMISSION_DENIED' } } })
    t.match((await viewer.get('/api/settings')).body, { tagCategories: [{ name: 'event' }] })
    const made = await api.post('/api/tag-categories', { name: 'Parcel', color: '#AABBCC' })
    t.match(made, { status: 200, body: { category: { id: 6, name: 'Parcel', color: '#aabbcc' } } })
    await until(
      () => told.at(-1),
      (last) => JSON.stringify(last?.tagCategories ?? '').includes('Parcel'),
      'the categories on the WebSocket',
    )
  })

  await t.test('categories: unique, in use, moved, and kept beside the database', async (t) => {
    t.match(await viewer.get('/api/tag-categories'), { status: 200, body: { total: 6 } })
    t.match(await limited.post('/api/tag-categories', { name: 'x', color: '#000000' }), { status: 403 })
    t.match(await api.post('/api/tag-categories', { name: 'PARCEL', color: '#000000' }), { status: 409 })
    t.match(await api.post('/api/tag-categories', { name: 'x', color: 'red' }), { status: 400 })
    t.match(await api.put('/api/tag-categories/6', { color: '#000001' }), {
      body: { category: { name: 'Parcel', color: '#000001' } },
    })
    t.match(await api.put('/api/tag-categories/99', { color: '#000001' }), { status: 404 })
    await api.post('/api/recording/tag', { category: 'parcel', title: 'box', timestamp: 0, recording_id: 2 })
    t.match(await api.delete('/api/tag-categories/6'), { status: 409, body: { error: { code: 'CONFLICT' } } })
    t.match(await api.delete('/api/tag-categories/6?move_to=99'), { status: 404 })
    t.match(await api.delete('/api/tag-categories/6?move_to=1'), { status: 200 })
    t.match((await api.get('/api/recordings/2/tags')).body.tags, [{ title: 'box', category: 1 }])
    const kept = JSON.parse(readFileSync(join(data, 'persistent/tag-categories.json'), 'utf8'))
    t.same(kept.categories, (await api.get('/api/tag-categories')).body.categories)
  })

  await t.test('a still is an entry; what is deleted leaves neither file nor tag', async (t) => {
    const still = await api.post('/snapshot', { filename: 'porch' })
    const [id] = await ids(api, '?mode=image')
    const { body } = await api.get(`/api/recordings/${id}/info`)
    t.match(body, {
      filename: 'porch.jpg',
      mediaEncoding: 'jpg',
      path: still.body.path,
      size: still.body.size,
      resolution: '320x240',
    })
    t.match(body, { state: 'ready', createdBy: 'admin', durationMs: 0 })
    t.equal((await api.bytes(`/api/recordings/${id}`)).headers.get('content-type'), 'image/jpeg')
    t.match(await api.post('/api/recording/tag', { category: 'note', title: 'x', timestamp: 0, recording_id: id }), {
      status: 200,
    })
    t.match(await api.delete(`/api/recordings/${id}`), { status: 200 })
    t.notOk(existsSync(join(data, 'media', String(still.body.path).slice('/media/data'.length))))
    t.match(await api.get(`/api/recordings/${id}/tags`), { status: 404 })

    t.match(await api.delete('/api/recordings/3'), { status: 200 })
    t.notOk(existsSync(join(data, 'media/recordings/r3.mp4')))
    t.notOk(existsSync(join(data, 'media/recordings/r3.part2.mp4')))
    t.same(await ids(api, '?camera=1&sort=oldest'), [1, 5])
  })
})
