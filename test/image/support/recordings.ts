/** Recordings on the device: made, fetched, and read by ffprobe; and what must be the same after a power cut. */
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Api, type Json, until } from '../../support/api.ts'
import { type Found, probed } from './device.ts'

const STOP_LIMIT_MS = 60_000

export interface Fetched {
  readonly id: string
  readonly sha256: string
  readonly found: Found
}

/** Starts a recording; to its number. */
export async function startRecording(api: Api, body: object = {}): Promise<string> {
  const { status, body: started } = await api.post('/api/recording/start', { mode: 'video', ...body })
  if (status !== 200) throw new Error(`a recording does not start: ${status} ${JSON.stringify(started)}`)
  return String(started.recordingId)
}

/** Waits until the recording is over; to what the catalogue says then. */
export async function over(api: Api, id: string, limitMs = STOP_LIMIT_MS): Promise<Json> {
  const { body } = await until(
    () => api.get(`/api/recordings/${id}/info`),
    ({ status, body }) => status === 200 && String(body.state) !== 'recording',
    `the end of recording ${id}`,
    limitMs,
  )
  return body
}

/** Downloads the recording (of one part) and reads all of it. */
export async function fetched(api: Api, id: string): Promise<Fetched> {
  const { status, bytes } = await api.bytes(`/api/recordings/${id}`)
  if (status !== 200) throw new Error(`recording ${id} is not handed out: ${status} ${bytes.toString('utf8', 0, 300)}`)
  const folder = mkdtempSync(join(tmpdir(), 'camera-recording-'))
  try {
    const file = join(folder, 'recording')
    writeFileSync(file, bytes)
    const found = await probed(file, ['-count_packets'])
    return { id, sha256: createHash('sha256').update(bytes).digest('hex'), found }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A recording of that many seconds, finished and fetched. */
export async function recorded(api: Api, seconds: number): Promise<Fetched> {
  const id = await startRecording(api, { duration: seconds })
  const { state } = await over(api, id, STOP_LIMIT_MS + seconds * 1000)
  if (String(state) !== 'ready') throw new Error(`recording ${id} is ${state}`)
  return fetched(api, id)
}

export async function catalogue(api: Api): Promise<Json[]> {
  const { body } = await api.get('/api/recordings?limit=1000&mode=all')
  return body.recordings as unknown as Json[]
}
