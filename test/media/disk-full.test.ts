import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { truncateSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { WebSocket } from 'ws'
import { type Json, login, until } from '../support/api.ts'
import { gaps, readFrameNumbers } from '../support/frames.ts'
import { RtspClient } from '../support/rtsp-client.ts'
import { memoryDisk } from '../support/scratch.ts'
import { startServer } from '../support/server.ts'

const MB = 1024 * 1024

t.test('a disk that fills up ends the recording cleanly and breaks nothing else', async (t) => {
  const disk = memoryDisk(t, '1400m')
  const server = await startServer(t, { dataDir: join(disk, 'data') })
  t.teardown(() => server.stop())
  const api = await login(server)
  const viewer = await RtspClient.play(server)
  t.teardown(() => viewer.close())
  const socket = new WebSocket(`ws://127.0.0.1:${server.ports.http}/api/v1?token=${api.token}`)
  const events: Json[] = []
  socket.on('message', (data) => events.push(JSON.parse(String(data)) as Json))
  t.teardown(() => socket.terminate())
  await once(socket, 'open')
  socket.send(JSON.stringify({ subscribe: ['recording', 'alert'] }))

  // Nothing is deleted for space: this is about a disk that others have filled.
  t.match(await api.put('/api/config/storage', { storage: { retention_min_free_bytes: 0 } }), { status: 200 })
  t.match(await api.post('/api/recording/start', { filename: 'last', duration: 60 }), { status: 200 })
  await until(
    () => api.get('/api/recording/status'),
    ({ body }) => Number(body.duration) >= 2,
    'two seconds of recording',
  )
  // Somebody else takes all that is left, to the last byte.
  const hog = join(disk, 'hog')
  const fill = () => {
    const { stderr } = spawnSync('dd', ['if=/dev/zero', `of=${hog}`, 'bs=4k', 'oflag=append', 'conv=notrunc'], {
      encoding: 'utf8',
    })
    t.match(stderr, /No space left on device/)
  }
  fill()

  const status = await until(
    () => api.get('/api/recording/status'),
    ({ body }) => !body.recording,
    'the end of the recording',
  )
  t.match(status.body, { state: 'stopped', last_end: { reason: 'disk_full' } })
  const named = (type: string) => events.find(({ event }) => String(event?.type) === type)?.event
  t.match(await until(() => named('stopped'), Boolean, 'the event'), {
    category: 'recording',
    data: { reason: 'disk_full', state: 'ready' },
  })
  t.match(await until(() => named('storage_full'), Boolean, 'the alert'), { category: 'alert' })

  const packets = viewer.packets
  await viewer.gotPackets(packets + 60)
  t.equal(viewer.lost, 0, 'the viewer goes on')
  t.equal((await api.bytes('/image')).status, 200)
  // The last fragment, which had no room, has left some.
  fill()
  t.match(await api.post('/api/recording/start', {}), { status: 503, body: { error: { code: 'INSUFFICIENT_STORAGE' } } })
  t.match(await api.post('/snapshot'), { status: 503, body: { error: { code: 'INSUFFICIENT_STORAGE' } } })
  t.match((await api.get('/health')).body, { status: 'degraded', checks: { storage: 'warning' } })

  const list = await until(
    () => api.get('/api/recordings'),
    ({ body }) => String(body.recordings?.[0]?.state) === 'ready',
    'the catalogue entry, which needs no space',
  )
  const entry = list.body.recordings?.[0]
  truncateSync(hog, 10 * MB)
  const numbers = await readFrameNumbers({ input: join(server.dataDir, String(entry?.path).replace('/media/data', 'media')) })
  t.same(gaps(numbers), [], 'what was written plays')
  t.ok(numbers.length >= 30)
  t.match(await api.post('/api/recording/start', { duration: 1 }), { status: 200 }, 'with space again, recording works again')
  await until(
    () => api.get('/api/recordings?state=ready'),
    ({ body }) => Number(body.total) === 2,
    'the new recording',
  )
})
