import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { Catalogue, type NewRow, type RecordingRow } from '../../../app/server/recording/index.ts'
import { Store } from '../../../app/server/store/index.ts'

async function openCatalogue(t: Test) {
  const store = new Store(mkdtempSync(join(tmpdir(), 'catalogue-')), pino({ level: 'silent' }))
  await store.start()
  t.teardown(() => store.stop())
  return new Catalogue(store)
}

function row(start: number, state: RecordingRow['state'] = 'ready'): NewRow {
  const [filename, path] = [`r${start}.mp4`, `/media/data/recordings/r${start}.mp4`]
  return {
    filename,
    media_type: 'video',
    encoding: 'mp4',
    timestamp_start: start,
    timestamp_end: start + 500,
    duration: 500,
    size: 1,
    resolution: '1280x720',
    fps: 30,
    state,
    tag_markers: 0,
    path,
    parts: [{ filename, path, duration: 500, size: 1, sha256: null }],
    camera: 0,
    video_codec: 'h264',
    audio_codec: null,
    time_synced: true,
    boot_id: '',
    trigger: 'manual',
    created_by: null,
  }
}

t.test('pages are newest first and the total counts the range', async (t) => {
  const catalogue = await openCatalogue(t)
  for (const start of [3000, 1000, 2000, 5000, 4000]) catalogue.create(row(start))
  const starts = (query: Parameters<Catalogue['list']>[0]) => catalogue.list(query).rows.map((r) => r.timestamp_start)
  t.same(starts({ limit: 2, offset: 0 }), [5000, 4000])
  t.same(starts({ limit: 2, offset: 4 }), [1000])
  t.equal(catalogue.list({ limit: 2, offset: 0 }).total, 5)
  t.same(starts({ limit: 10, offset: 0, from: 2000, to: 4000 }), [3000, 2000], 'from is inclusive, to is not')
  t.equal(catalogue.list({ limit: 1, offset: 0, from: 2000, to: 4000 }).total, 2)
  t.same(starts({ limit: 10, offset: 0, state: 'ready', from: 2000, to: 4000 }), [3000, 2000])
})

t.test('a change moves the index entries along, a removal takes them away', async (t) => {
  const catalogue = await openCatalogue(t)
  const created = catalogue.create(row(1000, 'recording'))
  t.equal(created.id, 1)
  t.equal(catalogue.inState('recording').length, 1)
  catalogue.update(created.id, { state: 'ready', timestamp_end: 9000, duration: 8000 })
  t.same(catalogue.inState('recording'), [])
  t.match(catalogue.inState('ready'), [{ id: 1, duration: 8000 }])
  t.equal(catalogue.list({ limit: 10, offset: 0 }).total, 1)
  catalogue.remove(created.id)
  t.same(catalogue.list({ limit: 10, offset: 0 }), { rows: [], total: 0 })
  t.same(catalogue.inState('ready'), [])
  t.equal(catalogue.create(row(1)).id, 2, 'an id is never used again')
})
