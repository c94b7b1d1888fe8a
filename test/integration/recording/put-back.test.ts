import { copyFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import { Catalogue } from '../../../app/server/recording/index.ts'
import { MIGRATIONS, Store } from '../../../app/server/store/index.ts'
import { type Json, jobDone, login } from '../../support/api.ts'
import { CAMERA, hostPath, probe, record } from '../../support/recorded.ts'
import { startQuickServer } from '../../support/server.ts'

const DAY_MS = 86_400_000
const KNOWN = MIGRATIONS.at(-1)?.version ?? 0

t.test('an update is taken back: settings of before, all recordings, and the admins hear of it', async (t) => {
  const first = await startQuickServer(t, { args: CAMERA })
  const before = await login(first)
  await before.patch('/api/config/storage', { storage: { retention_days: 11 } })
  const old = await record(before, { filename: 'old', duration: 1 })
  await first.stop()
  const { dataDir } = first

  // It was made long ago.
  const store = new Store(join(dataDir, 'db'), pino({ level: 'silent' }), MIGRATIONS, join(dataDir, 'db-backups'))
  await store.start()
  new Catalogue(store).update(Number(old.id), { timestamp_start: Date.now() - 12 * DAY_MS })
  await store.stop()

  // What the newer release does: its migration, a setting, a deleted entry, a recording of one file and one of two.
  const summary = 'a table of settings moves'
  const run = (store: Store) => store.table('settings').put('brightness', { moved: true })
  const newer = new Store(
    join(dataDir, 'db'),
    pino({ level: 'silent' }),
    [...MIGRATIONS, { version: KNOWN + 1, summary, run }],
    join(dataDir, 'db-backups'),
  )
  await newer.start()
  newer.table('recordings').remove(Number(old.id))
  await newer.stop()
  const clip = hostPath(first, old.path)
  for (const name of ['new.mp4', 'long.mp4', 'long.part2.mp4']) copyFileSync(clip, join(dirname(clip), name))

  const server = await startQuickServer(t, { dataDir, args: CAMERA })
  t.ok(
    server.log.some((line) => JSON.parse(line).level >= 50 && /an update was taken back/.test(line)),
    'loudly',
  )
  const api = await login(server)
  t.match((await api.get('/api/config/storage')).body, { storage: { retention_days: 11 } })
  t.type((await api.get('/api/settings')).body.brightness, 'number')
  const jobs = (await api.get('/api/jobs')).body.jobs as unknown as Json[]
  t.match(jobs, [{ kind: 'storage_verify', username: null }])
  const done = await jobDone(api, jobs[0] as Json)
  t.match(done, { status: 'succeeded', result: { adopted: { count: 2 }, problems: { count: 0 } } })
  const listed = (await api.get('/api/recordings?sort=oldest')).body.recordings as unknown as Json[]
  const found = listed.map(({ filename, partCount, state }) => [filename, partCount, state])
  // The old one would be too old by far: somebody may have tagged it since.
  t.same(found.sort(), [
    ['long.mp4', 2, 'ready'],
    ['new.mp4', 1, 'ready'],
    ['old.mp4', 1, 'ready'],
  ])
  const adopted = listed.find(({ filename }) => String(filename) === 'new.mp4')
  t.equal(probe(hostPath(server, adopted?.path)).video.codec_name, 'h264')
  const { bytes } = await api.bytes(`/api/recordings/${adopted?.id}`)
  t.ok(bytes.length > 1000, 'it can be had')
  const told = (await api.get('/api/audit?action=alert.database_put_back')).body
  t.match(told, {
    total: 1,
    entries: [{ action: 'alert.database_put_back', data: { origin: 'copy', schema: KNOWN, copied: /^20/ } }],
  })
  t.same(readdirSync(join(dataDir, 'db-backups')), [`aside-${KNOWN + 1}.mdb`])
  await server.stop()

  const again = await startQuickServer(t, { dataDir, args: CAMERA })
  const later = await login(again)
  t.equal((await later.get('/api/audit?action=alert.database_put_back')).body.total as unknown, 1, 'told once')
  t.equal(((await later.get('/api/jobs')).body.jobs as unknown as Json[]).length, 1, 'looked for once')
})
