/** Drives the media helper alone, over its socket, without the server; and asks ffprobe about what it wrote. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { Connection } from '../../app/server/media/connection.ts'
import type { CameraStats, HelperStats, Methods, Notifications, RecorderStats } from '../../app/server/media/protocol.ts'
import { PATIENCE_MS, until } from './api.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)

export interface Notification<N extends keyof Notifications = keyof Notifications> {
  readonly name: N
  readonly params: Notifications[N]
}

export interface Helper {
  readonly pid: number
  /** A folder that goes with the test. */
  readonly folder: string
  /** What it has told so far. */
  readonly told: Notification[]
  call<M extends keyof Methods>(method: M, params: Methods[M]['params']): Promise<Methods[M]['result']>
  /** Those of a name so far, in order. */
  events<N extends keyof Notifications>(name: N): Notifications[N][]
  stats(): Promise<HelperStats>
  camera(): Promise<CameraStats>
  recorder(id: number): Promise<RecorderStats | undefined>
  /** Ends it with SIGKILL. */
  kill(): Promise<void>
  /** Closes the connection and waits for the end. */
  end(): Promise<number | null>
}

export interface CameraOptions {
  readonly width?: number
  readonly height?: number
  readonly fps?: number
  readonly audio?: boolean
  readonly bitrate_kbps?: number
  readonly gop?: number
}

async function connected(path: string): Promise<Socket | null> {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return socket
  } catch {
    return null
  }
}

export async function startHelper(t: Test, options: { env?: NodeJS.ProcessEnv; folder?: string } = {}): Promise<Helper> {
  const folder = mkdtempSync(join(options.folder ?? tmpdir(), 'helper-test-'))
  const path = join(folder, 'socket')
  const child = spawn(join(ROOT, 'dist/camera-media'), ['--socket', path, '--log-level', 'warn'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...options.env },
  })
  const closed = once(child, 'close')
  t.teardown(async () => {
    connection?.end('end of the test')
    if (running(child)) await closed
    rmSync(folder, { recursive: true, force: true })
  })
  let connection: Connection | undefined
  // The socket is there a moment before the helper listens on it.
  const socket = (await until(
    () => connected(path),
    (open) => open !== null,
    'the socket',
  )) as Socket
  const told: Notification[] = []
  connection = new Connection(
    socket,
    (name, params) => told.push({ name, params }),
    () => Promise.reject(new Error('there is no server')),
    () => undefined,
  )
  const peer = connection
  const helper: Helper = {
    pid: child.pid ?? 0,
    folder,
    told,
    call: (method, params) => peer.call(method, params),
    events: (name) => told.filter((one) => one.name === name).map((one) => one.params) as never,
    stats: () => peer.call('stats.get', {}),
    camera: async () => (await peer.call('stats.get', {})).cameras[0] as CameraStats,
    recorder: async (id) => (await peer.call('stats.get', {})).recorders.find((one) => one.id === id),
    kill: async () => {
      process.kill(child.pid ?? 0, 'SIGKILL')
      await closed
    },
    end: async () => {
      peer.end('asked to')
      await closed
      return child.exitCode
    },
  }
  return helper
}

function running(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

/** Adds camera 0 with the test picture and waits for its first frames. */
export async function addTestCamera(helper: Helper, options: CameraOptions = {}): Promise<void> {
  const mode = { width: options.width ?? 640, height: options.height ?? 360, fps: options.fps ?? 30 }
  await helper.call('camera.add', {
    id: 0,
    source: { type: 'test' },
    audio: options.audio ? { type: 'test' } : null,
    mode,
    controls: { brightness: 50, contrast: 50, saturation: 50 },
    streams: [{ name: 'stream1', ...mode, bitrate_kbps: options.bitrate_kbps ?? 1000, gop: options.gop ?? 60, audio: null }],
  })
  await until(
    () => helper.camera(),
    ({ frames_captured }) => frames_captured > 2,
    'the first frames',
  )
}

/** Waits until the recording has so many frames. */
export async function untilFrames(helper: Helper, id: number, frames: number, timeoutMs = PATIENCE_MS): Promise<RecorderStats> {
  const stats = await until(
    () => helper.recorder(id),
    (recorder) => (recorder?.frames ?? 0) >= frames,
    `${frames} frames of recorder ${id}`,
    timeoutMs,
  )
  return stats as RecorderStats
}

export async function untilEnded(helper: Helper, id: number, timeoutMs = PATIENCE_MS): Promise<Notifications['recorder.ended']> {
  const ended = await until(
    () => helper.events('recorder.ended').find((event) => event.id === id),
    (event) => event !== undefined,
    `the end of recorder ${id}`,
    timeoutMs,
  )
  return ended as Notifications['recorder.ended']
}

export interface ProbedStream {
  readonly codec_name: string
  readonly codec_tag_string: string
  readonly width?: number
  readonly r_frame_rate: string
  /** Seconds from the first packet to the end of the last. */
  readonly seconds: number
  /** Of each packet, in seconds. */
  readonly times: readonly number[]
  readonly packets: number
}

export interface Probed {
  readonly format: string
  readonly video: ProbedStream
  readonly audio: ProbedStream | undefined
}

interface RawStream {
  index: number
  codec_type: string
  codec_name: string
  codec_tag_string: string
  width?: number
  r_frame_rate: string
}

interface RawPacket {
  stream_index: number
  pts_time?: string
  dts_time?: string
  duration_time?: string
  size: string
}

export async function probe(file: string): Promise<Probed> {
  const fields = ['-show_streams', '-show_format', '-show_packets']
  const { stdout } = await run('ffprobe', ['-v', 'error', ...fields, '-of', 'json', file], { maxBuffer: 64 * 1024 * 1024 })
  const raw = JSON.parse(stdout) as { streams: RawStream[]; packets: RawPacket[]; format: { format_name: string } }
  const of = (type: string): ProbedStream | undefined => {
    const stream = raw.streams.find((one) => one.codec_type === type)
    if (!stream) return undefined
    const packets = raw.packets.filter((one) => one.stream_index === stream.index && Number(one.size) > 0)
    const times = packets.map((one) => Number(one.pts_time ?? one.dts_time))
    const last = packets.at(-1)
    const seconds = (times.at(-1) ?? 0) + Number(last?.duration_time ?? 0) - (times[0] ?? 0)
    return { ...stream, seconds, times, packets: packets.length }
  }
  return { format: raw.format.format_name, video: of('video') as ProbedStream, audio: of('audio') }
}

/** Distances between neighbours, in milliseconds. */
export function steps(times: readonly number[]): number[] {
  return times.slice(1).map((time, i) => (time - (times[i] ?? 0)) * 1000)
}
