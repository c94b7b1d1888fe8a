import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { Bus, type ServerEvent } from '../../../app/server/bus.ts'
import { DeviceStorage } from '../../../app/server/files/index.ts'
import { Finishing } from '../../../app/server/recording/finishing.ts'
import {
  Catalogue,
  Integrity,
  Places,
  type RecordingRow,
  Removal,
  Replication,
  StorageCare,
  USUAL_STORAGE,
} from '../../../app/server/recording/index.ts'
import { Insistence } from '../../../app/server/recording/insistence.ts'
import { Store } from '../../../app/server/store/index.ts'
import { until } from '../../support/api.ts'
import { newRow } from '../../support/recordings.ts'
import { scratchFolder } from '../../support/scratch.ts'

const silent = pino({ level: 'silent' })
const scratch = scratchFolder(t, 'clip')
const clip = join(scratch, 'clip.mp4')
const picture = ['-f', 'lavfi', '-i', 'testsrc2=s=320x240:r=25:d=2', '-c:v', 'libx264', '-g', '12', '-bf', '0']
execFileSync('ffmpeg', ['-v', 'error', ...picture, '-movflags', 'frag_keyframe+empty_moov+default_base_moof', clip])
const CLIP = readFileSync(clip)
const SUM = createHash('sha256').update(CLIP).digest('hex')
const DAY = '2026/05/04'

function finishing({ catalogue, storage, bus }: Device): Finishing {
  return new Finishing(catalogue, storage, bus, silent, new Insistence(silent))
}

class Device {
  readonly folder = mkdtempSync(join(tmpdir(), 'care-'))
  readonly media = join(this.folder, 'media-root')
  readonly backup = join(this.media, 'usb')
  store!: Store
  storage!: DeviceStorage
  catalogue!: Catalogue
  places!: Places
  replication!: Replication
  integrity!: Integrity
  care!: StorageCare
  bus!: Bus
  events: ServerEvent[] = []
  rate = 1e9
  firstRetryMs = 100
  readonly clock = { now: () => new Date(), synchronised: true, builtAt: Date.UTC(2026, 0, 1) }

  static async make(t: Test): Promise<Device> {
    const device = new Device()
    mkdirSync(device.backup, { recursive: true })
    writeFileSync(join(device.backup, '.camera-storage'), '')
    await device.start()
    t.teardown(async () => {
      await device.stop()
      rmSync(device.folder, { recursive: true })
    })
    return device
  }

  async start(): Promise<void> {
    this.bus = new Bus()
    this.bus.on('event', (event) => this.events.push(event))
    this.store = new Store(join(this.folder, 'db'), silent)
    await this.store.start()
    this.storage = new DeviceStorage(join(this.folder, 'data'), this.media)
    this.storage.start()
    this.catalogue = new Catalogue(this.store)
    const settings = this.store.table<string, unknown>('settings')
    const value = { ...USUAL_STORAGE, backup: '/media/usb/copies' }
    this.store.transaction(() => settings.put('recordingStorage', value))
    this.places = new Places(this.store, this.storage, this.bus, silent, () => false)
    this.places.start()
    const rate = () => this.rate
    this.integrity = new Integrity(this.catalogue, this.storage, this.bus, silent, rate)
    this.integrity.start()
    const options = { rate, now: () => new Date(), firstRetryMs: this.firstRetryMs }
    this.replication = new Replication(this.store, this.catalogue, this.storage, this.places, this.bus, silent, options)
    this.replication.start()
    this.care = new StorageCare(this.catalogue, this.storage, this.places, this.replication, this.clock, rate)
  }

  async stop(): Promise<void> {
    await this.replication.stop()
    await this.integrity.stop()
    this.places.stop()
    await this.store.stop()
  }

  path(name: string): string {
    return this.storage.hostPath(`/media/data/recordings/${DAY}/${name}`)
  }

  copy(name: string): string {
    return join(this.backup, 'copies', DAY, name)
  }

  put(name: string): string {
    const file = this.path(name)
    mkdirSync(dirname(file), { recursive: true })
    copyFileSync(clip, file)
    return file
  }

  /** As the recorder does when it has finished. */
  record(name: string, parts = 1): RecordingRow {
    const row = this.entered(name, parts)
    this.bus.emit('recording-finished', row)
    return row
  }

  /** Of which nothing has been told. */
  entered(name: string, parts = 1): RecordingRow {
    const names = Array.from({ length: parts }, (_, n) => (n === 0 ? name : name.replace('.', `.part${n + 1}.`)))
    for (const part of names) this.put(part)
    const path = (part: string) => `/media/data/recordings/${DAY}/${part}`
    return this.catalogue.create(
      newRow(name, {
        path: path(name),
        timestamp_start: Date.UTC(2026, 4, 4),
        duration: 2000 * parts,
        size: CLIP.length * parts,
        parts: names.map((part) => ({ filename: part, path: path(part), duration: 2000, size: CLIP.length, sha256: null })),
      }),
    )
  }

  copied(id: number): boolean {
    return this.replication.copyOf('backup', id) !== undefined
  }

  verify(repair = false) {
    const work = { signal: new AbortController().signal, checkIntegrity: true, repair, progress: () => undefined }
    return this.care.verify(work)
  }

  recover(source: 'primary' | 'backup' | 'network', from = 0, to = Date.now() + 1e9) {
    const work = { signal: new AbortController().signal, source, from, to, progress: () => undefined }
    return this.care.recover(work)
  }
}

const copiedOf = (device: Device, { id }: RecordingRow) => until(() => device.copied(id), Boolean, `the copy of ${id}`)

t.test('each finished file gets its checksum, after a restart too', async (t) => {
  const device = await Device.make(t)
  const { id } = device.record('a.mp4', 3)
  const sums = () => device.catalogue.get(id)?.parts.map(({ sha256 }) => sha256)
  await until(sums, (found) => found?.every((sum) => sum === SUM) === true, 'the checksums')
  await device.stop()
  await device.start()
  device.put('b.mp4')
  const part = { filename: 'b.mp4', path: `/media/data/recordings/${DAY}/b.mp4`, duration: 2000, size: CLIP.length, sha256: null }
  const forgotten = device.catalogue.create(newRow('b.mp4', { path: part.path, parts: [part], size: part.size, duration: 2000 }))
  await device.stop()
  await device.start()
  await until(
    () => device.catalogue.get(forgotten.id)?.parts[0]?.sha256,
    (sum) => sum === SUM,
    'what no event told of',
  )
})

t.test('recordings are copied whole, and are entries of their own', async (t) => {
  const device = await Device.make(t)
  const row = device.record('a.mp4', 2)
  await copiedOf(device, row)
  t.same(readdirSync(join(device.backup, 'copies', DAY)).sort(), ['a.mp4', 'a.part2.mp4'], 'no scratch file is left')
  t.same(readFileSync(device.copy('a.part2.mp4')), CLIP)
  t.match(device.replication.status(), {
    places: [{ place: 'backup', present: true, queued: 0, copied: 1, full: false }],
    current: null,
  })
  const { rows } = device.catalogue.list({ limit: 10, offset: 0, types: ['backup'] })
  t.match(rows, [{ media_type: 'backup', path: `/media/usb/copies/${DAY}/a.mp4`, parts: [{ sha256: SUM }, { sha256: SUM }] }])
  t.equal(device.catalogue.list({ limit: 10, offset: 0 }).total, 1, 'which a usual list does not show')
  t.ok(device.events.some(({ type, data }) => type === 'replicated' && data.id === row.id))
})

t.test('a target that is away gets everything when it is back, and a full stop in between loses nothing', async (t) => {
  const device = await Device.make(t)
  await copiedOf(device, device.record('first.mp4'))
  renameSync(device.backup, `${device.backup}.pulled`)
  const rows = ['a.mp4', 'b.mp4'].map((name) => device.record(name))
  const deleted = device.record('deleted.mp4')
  await until(
    () => device.replication.status().places[0],
    (place) => place?.present === false,
    'the outage is seen',
  )
  t.match(device.replication.status().places[0], { queued: 3, copied: 1 })
  t.notOk(existsSync(device.backup), 'nothing is written where the medium was')
  await device.stop()
  await device.start()
  await new Removal(device.store, device.catalogue, device.storage, device.bus, silent).remove(deleted.id)
  t.match(device.replication.status().places[0], { queued: 2 })
  renameSync(`${device.backup}.pulled`, device.backup)
  for (const row of rows) await copiedOf(device, row)
  t.notOk(existsSync(device.copy('deleted.mp4')))
})

t.test('a stop in the middle of a copy leaves nothing behind, and the copy follows', async (t) => {
  const device = await Device.make(t)
  await copiedOf(device, device.record('first.mp4'))
  device.rate = CLIP.length / 20
  const row = device.record('slow.mp4')
  await until(
    () => device.replication.status().current,
    (current) => current?.recording_id === row.id,
    'the copy under way',
  )
  await device.stop()
  t.same(readdirSync(join(device.backup, 'copies', DAY)), ['first.mp4'])
  device.rate = 1e9
  await device.start()
  await copiedOf(device, row)
  t.same(readFileSync(device.copy('slow.mp4')), CLIP)
})

t.test('what is deleted while it is copied leaves nothing on the target', async (t) => {
  const device = await Device.make(t)
  await copiedOf(device, device.record('first.mp4'))
  const folder = join(device.backup, 'copies', DAY)
  device.rate = CLIP.length * 2
  const row = device.record('gone.mp4', 2)
  await until(
    () => device.replication.status().current,
    (current) => current?.recording_id === row.id,
    'the copy under way',
  )
  device.catalogue.remove(row.id)
  device.rate = 1e9
  await until(
    () => readdirSync(folder).join() + (device.replication.status().current === null),
    (seen) => seen === 'first.mp4true',
    'an end without a trace',
  )
})

t.test('a target that refuses is told of and tried again', async (t) => {
  const device = await Device.make(t)
  writeFileSync(join(device.backup, 'copies'), 'in the way')
  const row = device.record('a.mp4')
  await until(() => device.replication.status().places[0]?.last_error, Boolean, 'the error')
  await until(() => device.events.find(({ type }) => type === 'replication_failed'), Boolean, 'the event')
  rmSync(join(device.backup, 'copies'))
  await copiedOf(device, row)
  t.match(device.replication.status().places[0], { last_error: null, queued: 0 })
})

t.test('a target that comes back is not kept waiting by why it failed before', async (t) => {
  const device = await Device.make(t)
  writeFileSync(join(device.backup, 'copies'), 'in the way')
  device.firstRetryMs = 3_600_000
  await device.stop()
  await device.start()
  const row = device.record('a.mp4')
  await until(() => device.replication.status().places[0]?.last_error, Boolean, 'the error')
  renameSync(device.backup, `${device.backup}.pulled`)
  await until(
    () => device.replication.status().places[0]?.present,
    (present) => present === false,
    'the outage is seen',
  )
  rmSync(join(`${device.backup}.pulled`, 'copies'))
  renameSync(`${device.backup}.pulled`, device.backup)
  await copiedOf(device, row)
})

t.test('a target that hangs does not hold up the other', async (t) => {
  const device = await Device.make(t)
  await copiedOf(device, device.record('a.mp4'))
  const { storage } = device
  const reachable = storage.reachable.bind(storage)
  const asked: string[] = []
  let release = (_answer: boolean): void => undefined
  const hanging = new Promise<boolean>((resolve) => {
    release = resolve
  })
  t.teardown(() => release(false))
  storage.reachable = (path) => {
    if (!path.startsWith('/media/nas')) return reachable(path)
    asked.push(path)
    return hanging
  }
  const value = { ...USUAL_STORAGE, backup: '/media/usb/copies', network: '/media/nas/copies' }
  device.bus.emit('state', { key: 'recordingStorage', value })
  await until(
    () => asked.length,
    (count) => count > 0,
    'the one that hangs',
  )
  await copiedOf(device, device.record('b.mp4'))
})

t.test('what a full database kept out of the queue is copied all the same', async (t) => {
  const device = await Device.make(t)
  await copiedOf(device, device.record('a.mp4'))
  const row = device.entered('b.mp4')
  const { store } = device
  const transaction = store.transaction.bind(store)
  let refused = 0
  store.transaction = (work) => {
    if (refused++ === 0) throw new Error('the database is full')
    return transaction(work)
  }
  device.bus.emit('recording-finished', row)
  t.equal(refused, 1)
  await copiedOf(device, row)
})

t.test('what waits for its end to be entered waits to be copied', async (t) => {
  const device = await Device.make(t)
  await copiedOf(device, device.record('a.mp4'))
  const row = device.entered('b.mp4')
  device.catalogue.update(row.id, { state: 'recording' })
  device.bus.emit('recording-finished', row)
  await copiedOf(device, device.record('c.mp4'))
  t.notOk(device.copied(row.id))
  device.catalogue.update(row.id, { state: 'ready' })
  await copiedOf(device, row)
})

t.test('a removal is finished after a crash, and refused without the medium', async (t) => {
  const device = await Device.make(t)
  const row = device.record('a.mp4', 2)
  await copiedOf(device, row)
  const copy = device.replication.copyOf('backup', row.id)?.entry ?? 0
  const make = () => new Removal(device.store, device.catalogue, device.storage, device.bus, silent)
  renameSync(device.backup, `${device.backup}.pulled`)
  t.match(
    await make()
      .remove(copy)
      .catch((error: unknown) => error),
    { code: 'SERVICE_UNAVAILABLE' },
  )
  t.ok(device.catalogue.get(copy))
  renameSync(`${device.backup}.pulled`, device.backup)
  device.store.transaction(() => device.store.table<number, true>('removals').put(row.id, true))
  rmSync(device.path('a.mp4'))
  await device.stop()
  await device.start()
  await make().start()
  t.equal(device.catalogue.get(row.id), undefined)
  t.notOk(existsSync(device.path('a.part2.mp4')))
  t.same([...device.store.table('removals').keys()], [])
})

t.test('a file that was deleted by itself is forgotten after a crash, one that is still there is not', async (t) => {
  const device = await Device.make(t)
  const [gone, kept, whole] = [device.record('gone.mp4', 2), device.record('kept.mp4'), device.record('whole.mp4')]
  const make = () => new Removal(device.store, device.catalogue, device.storage, device.bus, silent)
  const removal = make()
  for (const { path } of [gone, kept, whole]) removal.noteFile(path)
  for (const { path } of [gone, whole]) rmSync(device.storage.hostPath(path))
  await make().start()
  t.match(device.catalogue.get(gone.id), { filename: 'gone.part2.mp4', parts: { length: 1 }, duration: 2000 })
  t.equal(device.catalogue.get(kept.id)?.parts.length, 1)
  t.equal(device.catalogue.get(whole.id), undefined)
  t.same([...device.store.table('file_removals').keys()], [])
})

t.test('an original that cannot be read does not hold up the others', async (t) => {
  const device = await Device.make(t)
  const bad = device.record('bad.mp4')
  rmSync(device.path('bad.mp4'))
  mkdirSync(device.path('bad.mp4'))
  await until(
    () => device.events.find(({ type, data }) => type === 'replication_failed' && data.id === bad.id),
    Boolean,
    'the error',
  )
  const rows = ['b.mp4', 'c.mp4'].map((name) => device.record(name))
  for (const row of rows) await copiedOf(device, row)
  rmSync(device.path('bad.mp4'), { recursive: true })
  device.put('bad.mp4')
  await copiedOf(device, bad)
})

t.test('another file of that name on the target stays', async (t) => {
  const device = await Device.make(t)
  mkdirSync(dirname(device.copy('a.mp4')), { recursive: true })
  writeFileSync(device.copy('a.mp4'), 'of somebody else')
  const row = device.record('a.mp4')
  await copiedOf(device, row)
  t.equal(readFileSync(device.copy('a.mp4'), 'utf8'), 'of somebody else')
  t.same(readFileSync(device.copy(`${row.id}_a.mp4`)), CLIP)
})

t.test('verify finds what is missing, torn, altered and unknown; recover brings it back from the copies', async (t) => {
  const device = await Device.make(t)
  const [sound, missing, torn, altered] = ['sound.mp4', 'missing.mp4', 'torn.mp4', 'altered.mp4'].map((name) =>
    device.record(name),
  )
  if (!sound || !missing || !torn || !altered) throw new Error('four were recorded')
  for (const row of [sound, missing, torn, altered]) await copiedOf(device, row)
  await device.integrity.settled()
  t.match(await device.verify(), { checked: 8, sound: 8, problems: { count: 0 }, orphans: { count: 0 } })

  rmSync(device.path('missing.mp4'))
  truncateSync(device.path('torn.mp4'), CLIP.length - 10)
  const bytes = Buffer.from(CLIP)
  bytes.writeUInt8(bytes.readUInt8(CLIP.length - 2000) ^ 1, CLIP.length - 2000)
  writeFileSync(device.path('altered.mp4'), bytes)
  const { problems, checked } = await device.verify()
  t.equal(checked, 8)
  t.match(problems, {
    count: 3,
    items: [
      { recording_id: missing.id, problem: 'missing', copies: ['backup'] },
      { recording_id: torn.id, problem: 'size_mismatch' },
      { recording_id: altered.id, problem: 'hash_mismatch' },
    ],
  })
  t.equal(device.catalogue.get(torn.id)?.restored_at, undefined)
  t.match(await device.recover('backup', 0, 1), { checked: 0, recovered: { count: 0 } }, 'outside the time range')
  t.match(await device.recover('backup'), { checked: 4, recovered: { count: 3 }, failed: { count: 0 } })
  t.type(device.catalogue.get(torn.id)?.restored_at, 'number')
  for (const name of ['missing.mp4', 'torn.mp4', 'altered.mp4']) t.same(readFileSync(device.path(name)), CLIP, name)
  t.match(await device.verify(), { sound: 8, problems: { count: 0 } })
  await t.rejects(device.recover('network'), { code: 'SERVICE_UNAVAILABLE' })

  rmSync(device.path('missing.mp4'))
  writeFileSync(device.copy('missing.mp4'), bytes)
  t.match(await device.recover('backup'), { recovered: { count: 0 }, failed: { items: [{ why: 'the copy is damaged' }] } })
  t.notOk(existsSync(device.path('missing.mp4')), 'a damaged copy is not brought back')
})

t.test('verify with repair adopts files without an entry and judges defect ones again', async (t) => {
  const device = await Device.make(t)
  const file = device.put('orphan.mp4')
  device.put('orphan.part2.mp4')
  writeFileSync(device.path('junk.mp4'), 'no video')
  const ended = Date.UTC(2026, 4, 4, 12)
  for (const name of [file, device.path('orphan.part2.mp4')]) utimesSync(name, ended / 1000, ended / 1000)
  const defect = device.record('defect.mp4')
  device.catalogue.update(defect.id, { state: 'defect', duration: 0 })
  t.match(await device.verify(), { orphans: { count: 3 }, adopted: { count: 0 }, rejudged: { count: 0 } })
  const result = await device.verify(true)
  t.match(result, { adopted: { count: 1 }, rejudged: { items: [{ recording_id: defect.id, before: 'defect', after: 'ready' }] } })
  const adopted = device.catalogue.get(result.adopted.items[0]?.recording_id ?? 0)
  t.match(adopted, { state: 'ready', duration: 4000, timestamp_end: ended, resolution: '320x240', fps: 25, video_codec: 'h264' })
  t.equal(adopted?.parts.length, 2)
  t.equal(adopted?.time_synced, true)
  t.equal(adopted?.camera, 256, 'of no camera')
  t.ok((adopted?.restored_at ?? 0) > ended, 'its age counts from now')

  utimesSync(device.put('early.mp4'), 1000, 1000)
  const { adopted: again } = await device.verify(true)
  t.match(device.catalogue.get(again.items[0]?.recording_id ?? 0), { filename: 'early.mp4', time_synced: false })
})

t.test('after the loss of the database the copies become recordings again', async (t) => {
  const device = await Device.make(t)
  await copiedOf(device, device.record('a.mp4'))
  await device.stop()
  for (const gone of ['db', 'data']) rmSync(join(device.folder, gone), { recursive: true })
  await device.start()
  t.match(await device.recover('backup'), { checked: 0, recovered: { count: 1 } })
  t.same(readFileSync(device.path('a.mp4')), CLIP)
  t.match(device.catalogue.list({ limit: 10, offset: 0 }), { total: 1, rows: [{ state: 'ready', duration: 2000 }] })
})

t.test('slow motion that was interrupted lasted until its file was written to, not as long as it plays', async (t) => {
  const device = await Device.make(t)
  const file = device.put('slow.mp4')
  const begun = Date.UTC(2026, 4, 4)
  utimesSync(file, (begun + 500) / 1000, (begun + 500) / 1000)
  const path = `/media/data/recordings/${DAY}/slow.mp4`
  const over = { path, timestamp_start: begun, media_type: 'slowmotion', state: 'recording', duration: 0, size: 0 } as const
  const { id } = device.catalogue.create(newRow('slow.mp4', over))
  await finishing(device).recover()
  t.match(device.catalogue.get(id), { state: 'ready', duration: 2000, timestamp_end: begun + 500 })
})

t.test('what was interrupted ended when it was last written to, also where its torn tail is cut off', async (t) => {
  const device = await Device.make(t)
  const begun = Date.UTC(2026, 4, 4)
  const recovered = async (name: string, media_type: 'video' | 'timelapse', writtenAfter: number) => {
    const file = device.put(name)
    writeFileSync(file, CLIP.subarray(0, CLIP.length - 100))
    utimesSync(file, (begun + writtenAfter) / 1000, (begun + writtenAfter) / 1000)
    const path = `/media/data/recordings/${DAY}/${name}`
    const over = { path, timestamp_start: begun, media_type, state: 'recording', duration: 0, size: 0 } as const
    const { id } = device.catalogue.create(newRow(name, over))
    await finishing(device).recover()
    t.ok(readFileSync(file).length < CLIP.length - 100, 'the tail is cut off')
    return device.catalogue.get(id)
  }
  t.match(await recovered('lapse.mp4', 'timelapse', 600_000), { state: 'ready', timestamp_end: begun + 600_000 })
  t.match(await recovered('paused.mp4', 'video', 60_000), { state: 'ready', timestamp_end: begun + 60_000 }, 'with its pauses')
  const early = await recovered('early.mp4', 'video', -1000)
  t.equal(early?.timestamp_end, begun + (early?.duration ?? 0), 'it lasted for as long as it plays at least')
})

t.test('a recording that ended with its medium is ready again when the medium is back', async (t) => {
  const device = await Device.make(t)
  const path = '/media/usb/video/a.mp4'
  mkdirSync(join(device.backup, 'video'))
  copyFileSync(clip, join(device.backup, 'video/a.mp4'))
  renameSync(device.backup, `${device.backup}.pulled`)
  const part = { filename: 'a.mp4', path, duration: 0, size: 0, sha256: null }
  const lost = device.catalogue.create(newRow('a.mp4', { path, parts: [part], size: 0, duration: 0, state: 'defect' }))
  device.bus.emit('recording-finished', lost)
  renameSync(`${device.backup}.pulled`, device.backup)
  await until(
    () => device.catalogue.get(lost.id),
    (row) => row?.state === 'ready',
    'the judgement',
  )
  t.match(device.catalogue.get(lost.id), { duration: 2000, size: CLIP.length })
})

t.test('whoever fails over one recording that is there again does not keep the next from being judged', async (t) => {
  const device = await Device.make(t)
  let failures = 0
  device.bus.on('event', ({ type }) => {
    if (type === 'recovered' && failures++ === 0) throw new Error('no room')
  })
  const rows = ['a.mp4', 'b.mp4'].map((name) => device.entered(name))
  for (const { id } of rows) {
    const lost = device.catalogue.update(id, { state: 'defect', duration: 0 }) as RecordingRow
    device.bus.emit('recording-finished', lost)
  }
  const ready = () => rows.every(({ id }) => device.catalogue.get(id)?.state === 'ready')
  await until(ready, Boolean, 'both')
  t.equal(failures, 2)
})

t.test('nothing is copied while the database could not tell of it', async (t) => {
  const device = await Device.make(t)
  let full = true
  let asked = 0
  Object.defineProperty(device.store, 'isFull', {
    get: () => {
      asked++
      return full
    },
  })
  const row = device.record('a.mp4')
  await until(
    () => asked,
    (times) => times > 1,
    'a second look',
  )
  t.notOk(existsSync(device.copy('a.mp4')))
  t.match(device.replication.status().places[0], { queued: 1, last_error: null })
  full = false
  await copiedOf(device, row)
})
