/**
 * kill -9 at random moments while recording in every form, the helper and the server in turn: no finished file is damaged, each interrupted
 * one plays to within a second of the kill, and the catalogue says what lies on the disk. CRASH_ROUNDS says how often (200 in the full form),
 * CRASH_SEED repeats a run.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type Api, type Json, login, until } from '../support/api.ts'
import { readFrameNumbers } from '../support/frames.ts'
import { helperPid } from '../support/process.ts'
import { random } from '../support/random.ts'
import { scratchFolder } from '../support/scratch.ts'
import { startServer, type TestServer } from '../support/server.ts'

const ROUNDS = Number(process.env.CRASH_ROUNDS ?? 30)
const SEED = Number(process.env.CRASH_SEED ?? Date.now() % 2 ** 31)
const WIDTH = 640
const FPS = 30
const SHORTEST_MS = 900
const LONGEST_MS = 2600
const ROUND_LIMIT_MS = 120_000

const FORMS = [
  { format: 'mp4' },
  { format: 'avi', video_codec: 'h264', audio_codec: 'pcm' },
  { format: 'mp4', video_codec: 'h264', audio_codec: 'mp3' },
  { format: 'avi', video_codec: 'mjpeg', audio_codec: 'mp3' },
  { format: 'mp4', bitrate: 2_000_000 },
  { format: 'avi', video_codec: 'mjpeg', includeAudio: false },
] as const

interface Kept {
  readonly size: number
  readonly hash: string
}

class Run {
  /** What was finished, as it lay on the disk then. */
  private readonly kept = new Map<string, Kept>()
  /** Milliseconds that were missing at the end of each interrupted recording. */
  readonly lost: number[] = []

  constructor(
    private readonly t: Test,
    private readonly dataDir: string,
  ) {}

  host(path: unknown): string {
    return join(this.dataDir, String(path).replace('/media/data', 'media'))
  }

  /** The interrupted recording plays, whole, up to a second before the kill. */
  async checkInterrupted(entry: Json, newestFrame: number, what: string): Promise<void> {
    if (String(entry.state) !== 'ready') return void this.t.fail(`${what}: ${JSON.stringify(entry)}`)
    const numbers: (number | null)[] = []
    for (const { path } of entry.parts as unknown as Json[]) {
      numbers.push(...(await readFrameNumbers({ input: this.host(path), captured: WIDTH })))
    }
    const last = Number(numbers.at(-1))
    const missing = newestFrame - last
    this.lost.push((missing * 1000) / FPS)
    if (missing > FPS) this.t.fail(`${what}: the last frame is ${last}, ${newestFrame} had been captured at the kill`)
    const broken = numbers.findIndex((number, i) => i > 0 && number !== Number(numbers[i - 1]) + 1)
    if (broken >= 0) this.t.fail(`${what}: frame ${numbers[broken - 1]} is followed by ${numbers[broken]}`)
    const plays = Math.round((Number(entry.durationMs) / 1000) * FPS)
    if (Math.abs(plays - numbers.length) > 1) this.t.fail(`${what}: ${entry.durationMs} ms, but ${numbers.length} frames`)
  }

  /** Every entry's files are there with their sizes, no file is without an entry, and what was finished is as it was. */
  async checkAll(api: Api, what: string): Promise<void> {
    const entries = await list(api)
    const known = new Set<string>()
    for (const entry of entries) {
      for (const part of entry.parts as unknown as Json[]) {
        const path = this.host(part.path)
        known.add(path)
        if (String(entry.state) === 'recording') continue
        const size = existsSync(path) ? statSync(path).size : -1
        if (size !== Number(part.size)) this.t.fail(`${what}: ${path} has ${size} bytes, the catalogue says ${part.size}`)
        this.checkKept(path, size, what)
      }
    }
    const folder = join(this.dataDir, 'media/recordings')
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
    for (const { parentPath, name } of files) {
      const path = join(parentPath, name)
      const running = entries.some(
        (entry) => String(entry.state) === 'recording' && path.startsWith(this.host(entry.path).slice(0, -4)),
      )
      if (!known.has(path) && !running) this.t.fail(`${what}: ${path} has no entry`)
    }
  }

  private checkKept(path: string, size: number, what: string): void {
    const hash = createHash('sha1').update(readFileSync(path)).digest('hex')
    const before = this.kept.get(path)
    if (before && (before.hash !== hash || before.size !== size))
      this.t.fail(`${what}: ${path} has changed since it was finished`)
    this.kept.set(path, { size, hash })
  }
}

async function list(api: Api): Promise<Json[]> {
  const { body } = await api.get('/api/recordings?limit=1000')
  const rows = body.recordings as unknown as Json[]
  return Promise.all(rows.map(async ({ id }) => (await api.get(`/api/recordings/${id}/info`)).body))
}

async function frames(api: Api): Promise<number> {
  return Number((await api.get('/api/camera/info')).body.stats?.frames_captured)
}

async function start(api: Api, form: object): Promise<string> {
  const started = await until(
    () => api.post('/api/recording/start', { mode: 'video', ...form }),
    ({ status }) => status === 200,
    'a start',
  )
  return String(started.body.recordingId)
}

async function entryOf(api: Api, id: string): Promise<Json> {
  const { body } = await until(
    () => api.get(`/api/recordings/${id}/info`),
    ({ body }) => String(body.state) !== 'recording',
    `the verdict on ${id}`,
  )
  return body
}

t.test(`${ROUNDS} kills while recording, seed ${SEED}`, { timeout: ROUNDS * ROUND_LIMIT_MS + 60_000 }, async (t) => {
  const scratch = scratchFolder(t, 'crash-recordings')
  const options = {
    dataDir: join(scratch, 'data'),
    args: ['--camera', `test:${WIDTH}x360@${FPS}`, '--rate-limits', 'off', '--log-level', 'error'],
  }
  const rnd = random(SEED)
  const run = new Run(t, options.dataDir)
  let server: TestServer = await startServer(t, options)
  let api = await login(server)
  t.equal((await api.put('/api/config/storage', { storage: { segment_max_seconds: 2 } })).status, 200, 'parts of two seconds')
  for (let round = 1; round <= ROUNDS; round++) {
    const form = FORMS[Math.floor(rnd() * FORMS.length)] ?? {}
    const helper = round % 2 === 0
    const what = `round ${round} (${helper ? 'helper' : 'server'}, ${JSON.stringify(form)})`
    const id = await start(api, form)
    await delay(SHORTEST_MS + rnd() * (LONGEST_MS - SHORTEST_MS))
    const newest = await frames(api)
    if (helper) {
      process.kill(helperPid(server), 'SIGKILL')
      await run.checkInterrupted(await entryOf(api, id), newest, what)
      // It goes on by itself; this one is finished in order, and must stay as it is from then on.
      const next = await until(
        () => api.get('/api/recording/status'),
        ({ body }) => Number(body.position_ms) > 300,
        `${what}: the recording goes on`,
      )
      t.not(String(next.body.recording_id), id)
      const stopped = await api.post('/api/recording/stop')
      if (stopped.status !== 200) t.fail(`${what}: ${JSON.stringify(stopped.body)}`)
    } else {
      await server.kill()
      server = await startServer(t, options)
      api = await login(server)
      await run.checkInterrupted(await entryOf(api, id), newest, what)
    }
    await run.checkAll(api, what)
  }
  const sorted = run.lost.toSorted((a, b) => a - b)
  t.comment(
    `lost before the kill: median ${sorted[Math.floor(sorted.length / 2)]?.toFixed(0)} ms, at most ${sorted.at(-1)?.toFixed(0)} ms`,
  )
  t.equal(run.lost.length, ROUNDS, 'each interrupted recording plays')
  await server.stop()
})
