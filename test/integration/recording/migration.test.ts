import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import { Catalogue, type RecordingRow } from '../../../app/server/recording/index.ts'
import { MIGRATIONS, Store } from '../../../app/server/store/index.ts'
import { scratchFolder } from '../../support/scratch.ts'

const log = pino({ level: 'silent' })

t.test('recordings of schema 2 come along and are found by time, state and path', async (t) => {
  const folder = scratchFolder(t, 'recordings')
  const old = new Store(folder, log, MIGRATIONS.slice(0, 2))
  await old.start()
  const written = {
    id: 7,
    filename: 'r.mp4',
    media_type: 'video',
    encoding: 'mp4',
    timestamp_start: 5000,
    timestamp_end: 5700,
    duration: 700,
    size: 99,
    resolution: '1280x720',
    fps: 30,
    state: 'ready',
    tag_markers: 0,
    path: '/media/data/recordings/r.mp4',
    camera: 1,
  } as const
  old.transaction(() => {
    old.table('recordings').put(7, written)
    old.table('recordings_by_time').put([5000, 5700, 7], true)
    old.table('recordings_by_state').put(['ready', 7], true)
    old.table('meta').put('sequence:recordings', 7)
  })
  await old.stop()

  const store = new Store(folder, log)
  await store.start()
  t.teardown(() => store.stop())
  t.equal(store.schemaVersion, MIGRATIONS.at(-1)?.version)
  t.match(readdirSync(join(folder, 'backups')), [/^schema-2\./], 'the way back')
  const catalogue = new Catalogue(store)
  const row: RecordingRow = {
    ...written,
    parts: [{ filename: 'r.mp4', path: written.path, duration: 700, size: 99, sha256: null }],
    video_codec: 'h264',
    audio_codec: null,
    time_synced: true,
    boot_id: '',
    trigger: 'manual',
    created_by: null,
  }
  t.same(catalogue.get(7), row)
  t.same(catalogue.byPath(written.path), row)
  t.same(catalogue.list({ limit: 10, offset: 0 }), { rows: [row], total: 1, next: null })
  t.same(catalogue.inState('ready'), [row])
  t.same([...catalogue.oldestUntagged()], [row])
  t.equal(catalogue.create(row).id, 8, 'ids go on')
})
