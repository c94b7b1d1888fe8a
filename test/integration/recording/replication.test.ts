import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { Removal, USUAL_STORAGE } from '../../../app/server/recording/index.ts'
import { until } from '../../support/api.ts'

import { CLIP, copiedOf, DAY, Device, SUM, silent } from './device.ts'

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
