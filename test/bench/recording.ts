/**
 * What recording costs with the 1080p30 test camera while it is streamed: percent of one core, of the server and the helper together, beyond
 * streaming alone. Prints one JSON object; the main stream as it is must stay below the limit. Run by `make bench`.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { login } from '../support/api.ts'
import { helperPid, usage } from '../support/process.ts'
import { RtspClient } from '../support/rtsp-client.ts'
import { startServer, type TestServer } from '../support/server.ts'

const LIMIT_PERCENT = 3
const WINDOW_MS = 6000
/** Streaming alone and with the recording take turns, so that other work on the machine meets both; one turn where nothing is promised. */
const TURNS = 3
const LIMITED = 'mp4 h264'
const SETTLE_MS = 1500
/** Of the limited one nothing is encoded twice. */
const FORMS = {
  [LIMITED]: { format: 'mp4', includeAudio: false },
  'mp4 h264 aac': { format: 'mp4', includeAudio: true },
  'avi h264 pcm': { format: 'avi', includeAudio: true },
  'mp4 h264 of its own': { format: 'mp4', includeAudio: false, bitrate: 4_000_000 },
  'avi mjpeg': { format: 'avi', video_codec: 'mjpeg', includeAudio: false },
  'mp4 h265 720p15': { format: 'mp4', video_codec: 'h265', resolution: '1280x720', fps: 15, includeAudio: false },
  timelapse: { mode: 'timelapse', interval_ms: 1000 },
} as const

async function load(server: TestServer): Promise<number> {
  const pids = [server.pid, helperPid(server)]
  const spent = () => pids.reduce((sum, pid) => sum + usage(pid).cpuSeconds, 0)
  const [before, began] = [spent(), performance.now()]
  await delay(WINDOW_MS)
  return ((spent() - before) / (performance.now() - began)) * 100_000
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return Math.round((sorted[Math.floor(sorted.length / 2)] ?? Number.NaN) * 10) / 10
}

// The test support wants somebody who cleans up at the end.
const cleanups: (() => unknown)[] = []
const owner = { teardown: (work: () => unknown) => cleanups.unshift(work) } as unknown as Test
try {
  const server = await startServer(owner, { args: ['--camera', 'test:1920x1080@30', '--log-level', 'warn'] })
  const api = await login(server)
  const viewer = await RtspClient.play(server)
  await viewer.gotKeyFrames()
  const alone: number[] = []
  const added: Record<string, number> = {}
  for (const [name, form] of Object.entries(FORMS)) {
    const differences: number[] = []
    for (let turn = 0; turn < (name === LIMITED ? TURNS : 1); turn++) {
      const streaming = await load(server)
      const { status, body } = await api.post('/api/recording/start', { mode: 'video', ...form })
      if (status !== 200) throw new Error(`${name}: ${JSON.stringify(body)}`)
      await delay(SETTLE_MS)
      differences.push((await load(server)) - streaming)
      alone.push(streaming)
      await api.post('/api/recording/stop')
      await delay(SETTLE_MS)
    }
    added[name] = median(differences)
  }
  if (viewer.closed) throw new Error('the viewer was lost on the way: nothing was compared with streaming')
  await viewer.teardown()
  const first = added[LIMITED] ?? Number.NaN
  const figures = { cpu_percent_streaming_1080p30: median(alone), cpu_percent_added_by_recording: added }
  process.stdout.write(`${JSON.stringify({ ...figures, limit: LIMIT_PERCENT, beyond: !(first < LIMIT_PERCENT) }, null, 2)}\n`)
  if (!(first < LIMIT_PERCENT)) process.exitCode = 1
} finally {
  for (const work of cleanups) await work()
}
