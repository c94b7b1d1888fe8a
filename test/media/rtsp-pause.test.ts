import t from 'tap'
import { login, until } from '../support/api.ts'
import { CAMERA, FPS } from '../support/recorded.ts'
import { RtspClient } from '../support/rtsp-client.ts'
import { startServer } from '../support/server.ts'

/** Longer than a client that plays may take nothing. */
const PAUSE_MS = 12_000
const CLOCK = 90_000

interface Seen {
  /** Seconds of the RTP time line. */
  readonly rtp: number
  readonly at: number
}

/** The newest packet of the pictures at any time. */
function watch(client: RtspClient): () => Seen {
  let seen: Seen = { rtp: 0, at: 0 }
  client.on('packet', (packet) => {
    seen = { rtp: packet.readUInt32BE(4) / CLOCK, at: performance.now() / 1000 }
  })
  return () => seen
}

/** So much later on the RTP time line, which wraps. */
const later = (from: Seen, to: Seen) => (to.rtp - from.rtp + 2 ** 32 / CLOCK) % (2 ** 32 / CLOCK)

t.test('after a long pause the pictures go on: live ones with a new key frame, recorded ones where they were', async (t) => {
  const server = await startServer(t, { args: [...CAMERA] })
  const api = await login(server)
  await api.post('/api/recording/start', { duration: 5 })
  const ready = await until(
    () => api.get('/api/recordings?state=ready'),
    ({ body }) => Number(body.total) === 1,
    'the recording',
  )
  const recording = `/recording?id=${ready.body.recordings?.[0]?.id}`
  const pictures = await RtspClient.play(server)
  const both = await RtspClient.playWithSound(server)
  const recorded = await RtspClient.play(server, recording)
  const clients = { pictures, both, recorded }
  t.teardown(() => {
    for (const client of Object.values(clients)) client.close()
  })
  const newest = new Map(Object.values(clients).map((client) => [client, watch(client)]))
  const seen = (client: RtspClient) => newest.get(client)?.() as Seen
  await Promise.all([pictures.gotKeyFrames(), both.gotKeyFrames(), recorded.gotPackets(FPS)])
  for (const client of Object.values(clients)) t.equal((await client.ask('PAUSE')).status, 200)
  const before = new Map(
    Object.values(clients).map((client) => [
      client,
      { ...seen(client), packets: client.packets, sound: client.soundPackets, keys: client.keyFrames },
    ]),
  )
  const pausedAt = performance.now()
  await until(
    async () => performance.now() - pausedAt,
    (ms) => ms > PAUSE_MS,
    'a long pause',
  )
  const idle = await api.get('/api/camera/info')
  t.equal(Number(idle.body.stats?.streams?.[0]?.consumers), 0, 'nothing is encoded for those who pause')
  for (const [name, client] of Object.entries(clients)) {
    const was = before.get(client)
    if (!was) throw new Error('never')
    t.notOk(client.closed, `${name}: still connected`)
    t.equal(client.packets, was.packets, `${name}: nothing came`)
    t.equal((await client.ask('PLAY')).status, 200)
    await client.gotPackets(was.packets + 1)
    // A packet that was made while PAUSE was taken up goes to nobody; from PLAY on all arrive.
    const lostAtPause = client.lost
    const passed = later(was, seen(client))
    if (client === recorded) {
      t.ok(passed < 1, `${name}: ${passed} s on`)
    } else {
      t.ok(Math.abs(passed - (seen(client).at - was.at)) < 1, `${name}: ${passed} s on, nothing of the past`)
      await client.gotKeyFrames(was.keys + 1)
    }
    await client.gotPackets(was.packets + 2 * FPS)
    t.equal(client.lost, lostAtPause, `${name}: nothing is lost`)
  }
  await until(
    async () => both.soundPackets - (before.get(both)?.sound ?? 0),
    (packets) => packets > 50,
    'a second of sound',
  )
})
