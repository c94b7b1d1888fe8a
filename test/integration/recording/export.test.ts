/** Exports between the catalogue and the files, with a helper that only copies. */
import { EventEmitter } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { actingAs } from '../../../app/server/actor.ts'
import { Bus, type ServerEvent } from '../../../app/server/bus.ts'
import { DeviceStorage, Files } from '../../../app/server/files/index.ts'
import type { MediaSupervisor } from '../../../app/server/media/index.ts'
import { Catalogue, Exports, Integrity, type RecordingRow, Removal } from '../../../app/server/recording/index.ts'
import { Library } from '../../../app/server/recording/library.ts'
import { Slots } from '../../../app/server/recording/slots.ts'
import { verifyStorage } from '../../../app/server/recording/verify.ts'
import { Store } from '../../../app/server/store/index.ts'
import { newRow } from '../../support/recordings.ts'
import { scratchFolder } from '../../support/scratch.ts'

const silent = pino({ level: 'silent' })
const EVERYONE = { cameras: null }
const OTHER = { cameras: [3] }
const LIST = { recursive: true, limit: 100, offset: 0 }
const RANGE = { startMs: 2000, endMs: 6000 }

class Helper extends EventEmitter {
  /** Where the last export was written to. */
  path = ''
  /** What happens while it works. */
  meanwhile: () => Promise<void> | void = () => {}

  async call(method: string, params: { path: string }) {
    if (method !== 'media.export') return {}
    this.path = params.path
    writeFileSync(params.path, 'a copy', { flag: 'wx' })
    await this.meanwhile()
    return { duration_ms: 4500, size_bytes: 6 }
  }
}

async function device(t: Test) {
  const scratch = scratchFolder(t, 'export')
  const media = join(scratch, 'media')
  const store = new Store(join(scratch, 'db'), silent)
  await store.start()
  const storage = new DeviceStorage(media)
  storage.start()
  const bus = new Bus()
  const events: ServerEvent[] = []
  bus.on('event', (event) => events.push(event))
  const catalogue = new Catalogue(store)
  const removal = new Removal(store, catalogue, storage, bus, silent)
  const library = new Library(catalogue, removal, storage, new Slots(() => undefined))
  const files = new Files(storage, library, bus, silent, () => ({ maxUploadBytes: 1e6, quotaBytes: 0 }))
  await files.start()
  const helper = new Helper()
  const exports = new Exports(helper as unknown as MediaSupervisor, store, catalogue, storage, files, bus, silent)
  exports.start()
  t.teardown(async () => {
    await files.stop()
    await store.stop()
  })
  const source = catalogue.create(newRow('visit.mp4', { duration: 7000, timestamp_start: 1_000_000, size: 1000 }))
  const controller = new AbortController()
  const run = (stem = 'cut') => {
    const context = { id: '1', signal: controller.signal, progress: () => {} }
    return actingAs({ username: 'eve', address: '::1' }, () => exports.run(source, RANGE, stem, context))
  }
  const folder = join(media, 'exports')
  const upload = async (filename: string, content: string, folder = 'exports') => {
    const upload = await files.receive(null)
    try {
      await upload.write(Buffer.from(content))
      await files.publish(upload, { folder, filename, overwrite: false })
    } finally {
      await upload.end()
    }
  }
  const backups = () => catalogue.list({ types: ['backup'], limit: 100, offset: 0 }).rows
  return {
    media,
    store,
    storage,
    bus,
    events,
    catalogue,
    library,
    files,
    helper,
    exports,
    controller,
    run,
    folder,
    upload,
    backups,
  }
}

const code = (error: { code?: string }) => error.code ?? String(error)

t.test('an export belongs to the camera of its recording, by whatever way it is asked for', async (t) => {
  const { run, files, backups, catalogue, folder, library, events, media } = await device(t)
  const done = await run()
  const [row] = backups()
  t.match(row, {
    id: done.recording_id,
    media_type: 'backup',
    encoding: 'mp4',
    filename: 'cut.mp4',
    path: '/media/data/exports/cut.mp4',
    camera: 0,
    state: 'ready',
    size: 6,
    duration: 4500,
    resolution: '1280x720',
    fps: 30,
    timestamp_start: 1_001_500,
    timestamp_end: 1_006_000,
    created_by: 'eve',
  })
  t.match(events.at(-1), { type: 'exported', data: { id: done.recording_id, camera: 0, source: 1 } })
  t.equal(readFileSync(join(folder, 'cut.mp4'), 'utf8'), 'a copy')
  t.same(readdirSync(join(media, '.uploads')), [])

  await t.rejects(files.find(OTHER, 'exports/cut.mp4', 'path').open(), { code: 'PERMISSION_DENIED' })
  t.same((await files.list(OTHER, 'exports', 'path', LIST)).files, [])
  await t.rejects(files.remove(OTHER, 'exports/cut.mp4', 'path', false), { code: 'PERMISSION_DENIED' })
  t.equal((await files.list(EVERYONE, 'exports', 'path', LIST)).files.length, 1)
  t.same(
    [...catalogue.oldestUntagged()].map(({ filename }) => filename),
    ['visit.mp4'],
    'retention leaves it alone',
  )

  await files.remove(EVERYONE, 'exports/cut.mp4', 'path', false)
  t.same(backups(), [], 'the entry goes with the file')
  const again = await run()
  await library.remove(again.recording_id)
  t.notOk(existsSync(join(folder, 'cut.mp4')), 'and the file with the entry')
  t.same(backups(), [])
})

t.test('names of users are theirs', async (t) => {
  const { run, upload, folder, helper, files, media, backups } = await device(t)
  await upload('.export-1.mp4', 'mine')
  helper.meanwhile = async () => {
    t.notOk(helper.path.startsWith(folder), 'what is under way lies elsewhere')
    const { files: seen } = await files.list(EVERYONE, '', 'path', LIST)
    t.notOk(
      seen.some(({ name }) => helper.path.endsWith(name)),
      'and nobody sees it',
    )
    const hidden = helper.path.slice(media.length + 1)
    await t.rejects(files.remove(EVERYONE, hidden, 'path', false), { code: 'INVALID_REQUEST' })
    await upload('cut.mp4', 'taken')
  }
  t.match(await run(), { filename: 'cut_1.mp4' })
  t.equal(readFileSync(join(folder, '.export-1.mp4'), 'utf8'), 'mine')
  t.equal(readFileSync(join(folder, 'cut.mp4'), 'utf8'), 'taken')
  await files.start()
  t.ok(existsSync(join(folder, '.export-1.mp4')), 'also after a restart')

  // Whole folders go while it works; names appear that a look does not find.
  helper.meanwhile = async () => {
    await files.remove(EVERYONE, 'exports', 'path', true)
    mkdirSync(folder)
    symlinkSync('nowhere', join(folder, 'cut.mp4'))
  }
  t.match(await run(), { filename: 'cut_1.mp4' })
  t.same(
    backups().map(({ filename }) => filename),
    ['cut_1.mp4'],
    'a name that was lost leaves no entry',
  )
  helper.meanwhile = () => {}

  await files.remove(EVERYONE, 'exports', 'path', true)
  await upload('exports', 'a file', '')
  t.equal(await run().catch(code), 'CONFLICT')
})

t.test('what is cut off leaves nothing', async (t) => {
  const { run, helper, controller, media, store, storage, catalogue, exports, folder, backups, bus } = await device(t)
  helper.meanwhile = () => {
    throw new Error('the helper died')
  }
  await t.rejects(run(), /the helper died/)
  t.same([readdirSync(join(media, '.uploads')), readdirSync(folder), backups()], [[], [], []])

  // A crash between the entry and its file.
  const entered = (filename: string, size: number): RecordingRow => {
    const place = { filename, path: `/media/data/exports/${filename}`, size }
    const more = { media_type: 'backup', encoding: 'mp4', camera: 0, timestamp_start: 1 } as const
    return store.transaction(() => {
      const row = catalogue.addMedia({ ...place, ...more })
      store.table<string, number>('meta').put('export_entry', row.id)
      return row
    })
  }
  entered('never.mp4', 6)
  exports.start()
  t.same(backups(), [], 'an entry without its file')
  writeFileSync(join(folder, 'stranger.mp4'), 'of somebody else')
  entered('stranger.mp4', 6)
  exports.start()
  t.same(backups(), [], 'an entry whose name was taken')
  t.ok(existsSync(join(folder, 'stranger.mp4')))
  writeFileSync(join(folder, 'there.mp4'), 'a copy')
  const kept = entered('there.mp4', 6)
  exports.start()
  exports.start()
  t.same(
    backups().map(({ id }) => id),
    [kept.id],
    'one whose file is there stays',
  )

  // Background work on such entries.
  const integrity = new Integrity(catalogue, storage, bus, silent, () => 1e9)
  integrity.start()
  await integrity.settled()
  await integrity.stop()
  t.match(catalogue.get(kept.id)?.parts[0]?.sha256, /^[0-9a-f]{64}$/)
  catalogue.remove(1)
  const work = { signal: new AbortController().signal, rate: () => 1e9, checkIntegrity: true, repair: true, progress: () => {} }
  const clock = { now: () => new Date(), synchronised: true, builtAt: 0 }
  const verify = () => verifyStorage({ catalogue, storage, clock, hasCopy: () => false }, work)
  t.match(await verify(), { checked: 1, sound: 1, problems: { count: 0 }, orphans: { count: 0 } })
  rmSync(join(folder, 'there.mp4'))
  t.match(await verify(), { problems: { items: [{ recording_id: kept.id, problem: 'missing' }] } })

  helper.meanwhile = () => controller.abort()
  await t.rejects(run(), { name: 'AbortError' })
  t.same(readdirSync(join(media, '.uploads')), [])
  t.notOk(existsSync(join(folder, 'cut.mp4')))
})
