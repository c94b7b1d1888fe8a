/**
 * Figures of the whole server with the 720p30 test camera: CPU time per second of wall clock, resident memory, join times. Prints one JSON
 * object. CPU is the processes' own (user + system), so other work on the machine does not count. Run by `make bench`.
 */
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { login, until } from '../support/api.ts'
import { helperPid, usage } from '../support/process.ts'
import { RtspClient } from '../support/rtsp-client.ts'
import { startServer, type TestServer } from '../support/server.ts'

/** What the product promises on a machine of two cores; a figure beyond fails the run. */
const LIMITS = {
  idle_cpu_percent: 8,
  idle_rss_mb: 150,
  join_median_ms: 200,
  join_p95_ms: 300,
  cpu_percent_added_by_9_clients: 10,
  cpu_percent_added_by_recording: 3,
  broadcast_p95_ms: 50,
} as const

const WINDOW_MS = 10_000
const JOINS = 20

/** Percent of one core over the window, of the server and the helper together. */
async function load(server: TestServer): Promise<number> {
  const pids = [server.pid, helperPid(server)]
  const spent = () => pids.reduce((sum, pid) => sum + usage(pid).cpuSeconds, 0)
  const [before, began] = [spent(), performance.now()]
  await delay(WINDOW_MS)
  return round(((spent() - before) / (performance.now() - began)) * 100_000)
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

/** Milliseconds from the connection to the last byte of the first key frame. */
async function joinTime(server: TestServer): Promise<number> {
  const began = performance.now()
  const client = await RtspClient.play(server)
  await client.gotKeyFrames()
  const took = (client.firstKeyFrameAt ?? Number.NaN) - began
  await client.teardown()
  return took
}

async function joins(server: TestServer) {
  const times: number[] = []
  for (let i = 0; i < JOINS; i++) times.push(await joinTime(server))
  return quantiles(times)
}

/** Milliseconds from a change over HTTP to its arrival at the last of ten WebSocket clients. */
async function broadcastTime(server: TestServer, token: string, put: (brightness: number) => Promise<unknown>) {
  const address = `ws://127.0.0.1:${server.ports.http}/api/v1?token=${token}`
  const sockets = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const socket = new WebSocket(address)
      await once(socket, 'message')
      return socket
    }),
  )
  const times: number[] = []
  for (let i = 0; i < JOINS; i++) {
    const arrived = Promise.all(sockets.map((socket) => once(socket, 'message')))
    const began = performance.now()
    await Promise.all([arrived, put(51 + i)])
    times.push(performance.now() - began)
  }
  for (const socket of sockets) socket.terminate()
  return quantiles(times)
}

function quantiles(times: number[]): { median_ms: number; p95_ms: number; max_ms: number } {
  times.sort((a, b) => a - b)
  const at = (share: number) => round(times[Math.min(times.length - 1, Math.ceil(share * times.length) - 1)] ?? Number.NaN)
  return { median_ms: at(0.5), p95_ms: at(0.95), max_ms: at(1) }
}

async function bench(server: TestServer) {
  const api = await login(server)
  const idle = { cpu_percent: await load(server), rss_mb: round(usage(server.pid).rssMb + usage(helperPid(server)).rssMb) }

  const cold: number[] = []
  const noEncoder = () =>
    until(
      () => api.get('/api/streams'),
      ({ body }) => body.streams?.[0]?.encoder === null,
      'no encoder',
      15_000,
    )
  for (let i = 0; i < 5; i++) {
    await noEncoder()
    cold.push(round(await joinTime(server)))
  }
  const viewer = await RtspClient.play(server)
  await viewer.gotKeyFrames()
  const warm = await joins(server)

  const one = await load(server)
  const others = await Promise.all(Array.from({ length: 9 }, () => RtspClient.play(server)))
  await Promise.all(others.map((client) => client.gotKeyFrames()))
  const ten = await load(server)
  for (const client of others) await client.teardown()

  const streaming = await load(server)
  await api.post('/api/recording/start', {})
  const recording = await load(server)
  await api.post('/api/recording/stop')
  await viewer.teardown()
  const broadcast = await broadcastTime(server, api.token, (brightness) => api.put('/api/camera/settings', { brightness }))
  return {
    idle,
    websocket_broadcast_to_10: broadcast,
    join_encoder_running: warm,
    join_encoder_stopped_ms: cold,
    cpu_percent_1_client: one,
    cpu_percent_10_clients: ten,
    cpu_percent_added_by_9_clients: round(ten - one),
    cpu_percent_added_by_recording: round(recording - streaming),
  }
}

// The test support wants somebody who cleans up at the end.
const cleanups: (() => unknown)[] = []
const owner = { teardown: (work: () => unknown) => cleanups.unshift(work) } as unknown as Test
try {
  const server = await startServer(owner, { args: ['--log-level', 'warn'] })
  const figures = await bench(server)
  const measured: Record<keyof typeof LIMITS, number> = {
    idle_cpu_percent: figures.idle.cpu_percent,
    idle_rss_mb: figures.idle.rss_mb,
    join_median_ms: figures.join_encoder_running.median_ms,
    join_p95_ms: figures.join_encoder_running.p95_ms,
    cpu_percent_added_by_9_clients: figures.cpu_percent_added_by_9_clients,
    cpu_percent_added_by_recording: figures.cpu_percent_added_by_recording,
    broadcast_p95_ms: figures.websocket_broadcast_to_10.p95_ms,
  }
  const beyond = Object.entries(LIMITS).filter(([name, limit]) => !(measured[name as keyof typeof LIMITS] <= limit))
  process.stdout.write(`${JSON.stringify({ ...figures, beyond: Object.fromEntries(beyond) }, null, 2)}\n`)
  if (beyond.length > 0) process.exitCode = 1
} finally {
  for (const work of cleanups) await work()
}
