import t from 'tap'
import { cutParts } from '../../../app/server/recording/export.ts'
import { entryOf } from '../../../app/server/recording/export-entry.ts'
import { placeOf } from '../../../app/server/recording/thumbnails.ts'
import { newRow } from '../../support/recordings.ts'

const part = (name: string, duration: number) => ({ filename: name, path: `/${name}`, duration, size: 1, sha256: null })
const row = { parts: [part('a', 4000), part('b', 3000), part('c', 500)] }

t.test('a range is cut out of the parts that it touches', async (t) => {
  const cut = (startMs: number, endMs: number) => {
    return cutParts(row, { startMs, endMs }).map(({ path, start_ms, end_ms }) => [path, start_ms, end_ms])
  }
  t.same(cut(1000, 2000), [['/a', 1000, 2000]])
  t.same(cut(3000, 5000), [
    ['/a', 3000, 4000],
    ['/b', 0, 1000],
  ])
  t.same(cut(0, 9999), [
    ['/a', 0, 4000],
    ['/b', 0, 3000],
    ['/c', 0, 500],
  ])
  t.same(cut(4000, 7000), [['/b', 0, 3000]], 'what it only touches gives nothing')
  t.same(cut(3999, 7001), [
    ['/a', 3999, 4000],
    ['/b', 0, 3000],
    ['/c', 0, 1],
  ])
  t.same(cut(7500, 8000), [])
  t.same(cut(2000, 2000), [])
})

t.test('a position lies in one part', async (t) => {
  t.same(placeOf(row, 0), { path: '/a', position: 0 })
  t.same(placeOf(row, 3999.6), { path: '/a', position: 4000 })
  t.same(placeOf(row, 4000), { path: '/b', position: 0 })
  t.same(placeOf(row, 7200), { path: '/c', position: 200 })
  t.same(placeOf(row, 99_000), { path: '/c', position: 500 }, 'behind the end: the end')
  t.same(placeOf(row, -5), { path: '/a', position: 0 })
})

t.test('an export carries the time of what it shows', async (t) => {
  const made = { endMs: 6000, durationMs: 3500, size: 77, createdBy: 'eve' }
  const video = { ...newRow('a.avi', { duration: 7000, timestamp_start: 10_000 }), id: 1, camera: 3, audio_codec: 'pcm' as const }
  const same = { media_type: 'backup', encoding: 'mp4', duration: 3500, size: 77, camera: 3, created_by: 'eve' } as const
  const times = { timestamp_start: 12_500, timestamp_end: 16_000 }
  t.match(entryOf(video, made), { ...same, ...times, audio_codec: 'aac', resolution: '1280x720', fps: 30 })
  t.match(entryOf(video, { ...made, endMs: 99_999 }), { timestamp_start: 13_500, timestamp_end: 17_000 })
  t.match(entryOf(video, { ...made, durationMs: 6100 }), { timestamp_start: 10_000 }, 'never before the recording')
  const lapse = { ...video, media_type: 'timelapse' as const, timestamp_end: 10_000 + 70_000 }
  t.match(entryOf(lapse, made), { timestamp_start: 35_000, timestamp_end: 70_000, duration: 3500 }, 'ten times as fast')
})
