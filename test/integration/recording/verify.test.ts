import { existsSync, readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

import { CLIP, copiedOf, Device } from './device.ts'

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
