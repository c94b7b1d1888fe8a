import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { type Api, login, until } from '../support/api.ts'
import { helperPid, usage } from '../support/process.ts'
import { RtspClient } from '../support/rtsp-client.ts'
import { ADMIN_PASSWORD, startServer, type TestServer } from '../support/server.ts'

const run = promisify(execFile)
const SESSIONS = 300
const RECORDINGS = 60
const STILLS = 400
const AT_ONCE = 10

/** Both streams, two thirds with the sound. */
function play(server: TestServer, n: number): Promise<RtspClient> {
  if (n % 3 === 1) return RtspClient.play(server, '/stream1')
  return RtspClient.playWithSound(server, n % 3 === 0 ? '/stream2' : '/stream1')
}

/** Every second client leaves without a word. */
async function sessions(server: TestServer, count: number): Promise<void> {
  const one = async (n: number) => {
    const client = await until(
      () => play(server, n).catch(() => null),
      (playing) => playing !== null,
      'a place',
    )
    await client?.gotKeyFrames()
    if (n % 2 === 0) await client?.teardown()
    else client?.close()
  }
  for (let done = 0; done < count; done += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - done) }, (_, i) => one(done + i)))
  }
}

async function udpSession(server: TestServer): Promise<void> {
  const address = `rtsp://admin:${ADMIN_PASSWORD}@127.0.0.1:${server.ports.rtsp}/stream2`
  await run('ffprobe', ['-v', 'error', '-rtsp_transport', 'udp', '-show_streams', address])
}

async function recordings(api: Api, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    // Every third one has an encoder of its own.
    const start = await api.post('/api/recording/start', i % 3 === 0 ? { resolution: '320x240' } : {})
    if (start.status !== 200) throw new Error(JSON.stringify(start.body))
    await api.get('/api/recording/status')
    const stop = await api.post('/api/recording/stop')
    if (stop.status !== 200) throw new Error(JSON.stringify(stop.body))
  }
}

async function stills(api: Api, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const { status } = await api.bytes(`/image?quality=${1 + (i % 100)}`)
    // More than 100 encodings a second are refused, which must not leak either.
    if (status !== 200 && status !== 503) throw new Error(`still: ${status}`)
  }
}

t.test('descriptors, threads and memory after many sessions are what they were', { timeout: 600_000 }, async (t) => {
  const server = await startServer(t, { args: ['--rate-limits', 'off'] })
  const api = await login(server)
  const round = async (part: number) => {
    await sessions(server, Math.ceil(SESSIONS * part))
    await udpSession(server)
    await recordings(api, Math.ceil(RECORDINGS * part))
    await stills(api, Math.ceil(STILLS * part))
  }
  const idle = () =>
    until(
      () => api.get('/api/streams'),
      ({ body }) => [0, 1].every((i) => body.streams?.[i]?.encoder === null && Number(body.streams?.[i]?.clients?.length) === 0),
      'all clients and encoders gone',
      30_000,
    )
  // The first round fills pools and caches.
  await round(0.1)
  await idle()
  const pids = { server: server.pid, helper: helperPid(server) }
  const before = { server: usage(pids.server), helper: usage(pids.helper) }
  await round(1)
  await idle()
  for (const name of ['server', 'helper'] as const) {
    const was = before[name]
    const now = await until(
      () => usage(pids[name]),
      ({ descriptors, threads }) => descriptors <= was.descriptors && threads <= was.threads,
      `${name}: ${was.descriptors} descriptors and ${was.threads} threads again`,
      60_000,
    )
    t.ok(now.rssMb < was.rssMb + 40, `${name}: ${now.rssMb.toFixed(0)} MB resident after ${was.rssMb.toFixed(0)} MB`)
    t.comment(name, now)
  }
})
