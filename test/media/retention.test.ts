import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { WebSocket } from 'ws'
import { type Json, login, until } from '../support/api.ts'
import { scratchFolder } from '../support/scratch.ts'
import { startServer } from '../support/server.ts'

const MB = 1024 * 1024
const DISK_MB = 64
/** An hour at 1 Mbit/s. */
const WANTED_BYTES = 450 * MB
/** What the recorder leaves to whoever else needs the disk: an eighth; less what one look at the disk may be late. */
const MOST_USED = DISK_MB * MB - 4 * MB
const BITRATE = 60_000_000
/** One and a half parts. */
const SECONDS = 3

t.test('an hour of recording goes through 64 MB: it never stops, never exceeds the disk, and what is tagged stays', async (t) => {
  const dataDir = scratchFolder(t, 'ring')
  const media = join(dataDir, 'media')
  mkdirSync(media)
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m`, 'tmpfs', media])
  // Tear-downs run last first: this one after the server's.
  t.teardown(() => {
    execFileSync('umount', [media])
  })
  // Noise: what no encoder can make small.
  const noise = join(dataDir, 'noise.mp4')
  const lavfi = ['-f', 'lavfi', '-i', 'nullsrc=s=640x360:r=30:d=2,noise=alls=100:allf=t']
  execFileSync('ffmpeg', ['-v', 'error', ...lavfi, '-c:v', 'libx264', '-preset', 'ultrafast', '-qp', '12', '-bf', '0', noise])
  const args = ['--camera', `file:${noise}`, '--rate-limits', 'off']
  const server = await startServer(t, { dataDir, args })
  t.teardown(() => server.stop())
  const api = await login(server)
  const storage = { start_margin_bytes: 0, retention_min_free_bytes: 2 ** 31, segment_max_seconds: 2 }
  t.match(await api.put('/api/config/storage', { storage }), { status: 200 })
  const events: Json[] = []
  const socket = new WebSocket(`ws://127.0.0.1:${server.ports.http}/api/v1?token=${api.token}`)
  socket.on('message', (data) => {
    const { event } = JSON.parse(String(data)) as Json
    if (event) events.push(event)
  })
  t.teardown(() => socket.terminate())
  await until(
    () => socket.readyState,
    (state) => state === WebSocket.OPEN,
    'the socket',
  )
  socket.send(JSON.stringify({ subscribe: ['recording', 'alert'] }))

  let mostUsed = 0
  const watch = setInterval(() => {
    const { blocks, bfree, bsize } = statfsSync(media)
    mostUsed = Math.max(mostUsed, (blocks - bfree) * bsize)
  }, 50)
  t.teardown(() => clearInterval(watch))

  let written = 0
  let tagged = 0
  const paths = new Map<number, string>()
  for (let n = 0; written < WANTED_BYTES; n++) {
    const bitrate = n === 0 ? 1_000_000 : BITRATE
    const started = await api.post('/api/recording/start', { bitrate, duration: SECONDS, format: 'avi', video_codec: 'mjpeg' })
    if (started.status !== 200) throw new Error(`start ${n}: ${JSON.stringify(started.body)}`)
    const id = Number(started.body.recordingId)
    if (n === 0) {
      tagged = id
      t.match(await api.post('/api/recording/tag', { category: 'event', title: 'keep' }), { status: 200 })
    }
    const { body: status } = await until(
      () => api.get('/api/recording/status'),
      ({ body }) => body.recording === (false as never),
      `the end of recording ${n}`,
      15_000,
    )
    t.match(status, { last_end: { reason: 'duration' } }, `recording ${n} was not cut short`)
    const entry = await until(
      async () => ((await api.get('/api/recordings?limit=1')).body.recordings as unknown as Json[])[0],
      (newest) => String(newest?.state) !== 'recording',
      'the judgement',
    )
    t.match(entry, { id, state: 'ready' })
    written += Number(entry?.size)
    paths.set(id, String(entry?.path))
  }
  const { body } = await api.get('/api/recordings?limit=1000')
  const left = (body.recordings as unknown as Json[]).map(({ id }) => Number(id))
  t.ok(mostUsed < MOST_USED, `used at most ${Math.round(mostUsed / MB)} of ${DISK_MB} MB for ${Math.round(written / MB)} MB`)
  t.ok(left.includes(tagged), 'the tagged one is still listed')
  const host = (id: number) => join(media, (paths.get(id) ?? '').replace('/media/data/', ''))
  t.ok(existsSync(host(tagged)))
  const untagged = left.filter((id) => id !== tagged).sort((a, b) => a - b)
  const newest = [...paths.keys()].slice(-untagged.length)
  t.same(untagged, newest, 'the oldest went, one after the other')
  t.ok(untagged.length >= 2 && untagged.length < paths.size - 5)
  for (const [id] of paths) t.equal(existsSync(host(id)), left.includes(id), `file and entry of ${id} go together`)
  const probe = ['-v', 'error', '-count_packets', '-show_entries', 'stream=nb_read_packets', '-of', 'csv=p=0']
  const frames = Number(execFileSync('ffprobe', [...probe, host(newest.at(-1) ?? 0)], { encoding: 'utf8' }).trim())
  t.ok(frames >= 30, `the last one plays: ${frames} pictures in its first part`)
  t.ok(events.some(({ type, data }) => String(type) === 'deleted' && String(data?.reason) === 'retention'))
  t.ok(events.some(({ category, type }) => String(category) === 'alert' && String(type) === 'retention_space'))
  t.notOk(events.some(({ type }) => ['storage_full', 'retention_exhausted'].includes(String(type))))
})
