import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Finishing } from '../../../app/server/recording/finishing.ts'
import { type RecordingRow, Removal } from '../../../app/server/recording/index.ts'
import { Insistence } from '../../../app/server/recording/insistence.ts'
import { until } from '../../support/api.ts'
import { newRow } from '../../support/recordings.ts'

import { CLIP, clip, copiedOf, DAY, Device, SUM, silent } from './device.ts'

function finishing({ catalogue, storage, bus }: Device): Finishing {
  return new Finishing(catalogue, storage, bus, silent, new Insistence(silent))
}

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
