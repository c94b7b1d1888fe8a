/** Recordings over the API, and what other readers find in their files. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type Api, type Json, until } from './api.ts'
import { gaps, readFrameNumbers } from './frames.ts'
import type { TestServer } from './server.ts'

export const FPS = 30
export const SIZE = { width: 640, height: 360 }
export const CAMERA = ['--camera', `test:${SIZE.width}x${SIZE.height}@${FPS}`]
/** As ffprobe names them. */
export const NAMES = { h264: 'h264', h265: 'hevc', mjpeg: 'mjpeg', aac: 'aac', mp3: 'mp3', pcm: 'pcm_s16le' }

export interface Probe {
  readonly video: { readonly codec_name: string; readonly r_frame_rate: string; readonly nb_read_packets: string }
  readonly audio: { readonly codec_name: string; readonly seconds: number } | undefined
  readonly seconds: number
}

export function probe(path: string): Probe {
  const entries = 'stream=codec_type,codec_name,r_frame_rate,nb_read_packets,nb_frames,sample_rate,duration:format=duration'
  const args = ['-v', 'error', '-count_packets', '-show_entries', entries, '-of', 'json', path]
  const { streams, format } = JSON.parse(execFileSync('ffprobe', args, { encoding: 'utf8' }))
  const ofType = (type: string) => streams.find((stream: { codec_type: string }) => stream.codec_type === type)
  const sound = ofType('audio')
  // Of PCM in AVI it tells the samples alone.
  const audio = sound && { ...sound, seconds: Number(sound.duration ?? sound.nb_frames / sound.sample_rate) }
  return { video: ofType('video'), audio, seconds: Number(format.duration) }
}

export function hostPath(server: TestServer, path: unknown): string {
  return join(server.dataDir, String(path).replace('/media/data', 'media'))
}

/** Starts, waits for the end that the duration sets, and returns the entry. */
export async function record(api: Api, body: object): Promise<Json> {
  const started = await api.post('/api/recording/start', body)
  if (started.status !== 200) throw new Error(`${JSON.stringify(body)}: ${JSON.stringify(started.body)}`)
  const id = String(started.body.recording_id ?? started.body.recordingId)
  return finished(api, id)
}

export async function finished(api: Api, id: string): Promise<Json> {
  const { body } = await until(
    () => api.get('/api/recordings?limit=1000'),
    ({ body }) =>
      [...(body.recordings as unknown as Json[])].some((row) => String(row.id) === id && String(row.state) !== 'recording'),
    `the end of recording ${id}`,
  )
  return (body.recordings as unknown as Json[]).find((row) => String(row.id) === id) as Json
}

export async function checkFrames(t: Test, paths: readonly string[], what: string): Promise<number> {
  const numbers: (number | null)[] = []
  for (const input of paths) {
    numbers.push(...(await readFrameNumbers({ input, captured: SIZE.width, width: SIZE.width })))
  }
  t.same(gaps(numbers), [], `${what}: no frame is lost or doubled`)
  return numbers.length
}
