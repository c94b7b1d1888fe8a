/**
 * The catalogue with a million entries: how long the store takes to open, what lists, inserts and changes cost, and the memory. Prints one
 * JSON object and fails beyond its limits. Run by `make bench-catalogue`; `CATALOGUE_ENTRIES` chooses another number.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { Bus } from '../../app/server/bus.ts'
import {
  Catalogue,
  Categories,
  type ListQuery,
  MEDIA_TYPES,
  type NewRow,
  Search,
  Tags,
} from '../../app/server/recording/index.ts'
import { Store } from '../../app/server/store/index.ts'

const ENTRIES = Number(process.env.CATALOGUE_ENTRIES ?? 1_000_000)
/** The list is judged by its CPU time, so that other work on the machine does not count; the clock's time is printed beside it. */
const LIMITS = { start_ms: 2000, range_list_p99_cpu_ms: 20 } as const
const BATCH = 2000
const CAMERAS = 4
const FIRST = Date.UTC(2024, 0, 1)
/** A minute from one entry of a camera to the next. */
const EVERY_MS = 60_000 / CAMERAS
const ROUNDS = 300

function row(n: number): NewRow {
  const start = FIRST + n * EVERY_MS
  const camera = n % CAMERAS
  const day = new Date(start).toISOString().slice(0, 10).replaceAll('-', '/')
  const filename = `recording_${day.replaceAll('/', '')}_${String(n % 86_400).padStart(6, '0')}_${n}.mp4`
  const path = `/media/data/recordings/${day}/${filename}`
  const [duration, size] = [n % 997 === 0 ? 6 * 3_600_000 : 59_000, 30_000_000 + n]
  return {
    filename,
    media_type: n % 20 === 0 ? 'image' : n % 50 === 1 ? 'timelapse' : 'video',
    encoding: 'mp4',
    video_codec: 'h264',
    audio_codec: 'aac',
    timestamp_start: start,
    timestamp_end: start + duration,
    duration,
    size,
    resolution: '1920x1080',
    fps: 30,
    state: n % 500 === 7 ? 'defect' : 'ready',
    tag_markers: n % 30 === 2 ? 1 : 0,
    path,
    parts: [{ filename, path, duration, size, sha256: n.toString(16).padStart(64, '5') }],
    camera,
    time_synced: true,
    boot_id: '2f1c1a0e-0d7e-4b4b-9a8e-1f2d3c4b5a69',
    trigger: 'manual',
    created_by: 'admin',
  }
}

const round = (ms: number) => Math.round(ms * 100) / 100

interface Times {
  readonly p50_ms: number
  readonly p99_ms: number
  readonly p99_cpu_ms: number
}

function times(rounds: number, work: (n: number) => void): Times {
  const [taken, cpu]: [number[], number[]] = [[], []]
  for (let n = 0; n < rounds; n++) {
    const [used, began] = [process.cpuUsage(), performance.now()]
    work(n)
    taken.push(performance.now() - began)
    const { user, system } = process.cpuUsage(used)
    cpu.push((user + system) / 1000)
  }
  const at = (values: number[], share: number) => {
    values.sort((a, b) => a - b)
    return round(values[Math.min(values.length - 1, Math.floor(share * values.length))] ?? Number.NaN)
  }
  return { p50_ms: at(taken, 0.5), p99_ms: at(taken, 0.99), p99_cpu_ms: at(cpu, 0.99) }
}

function memory(): Record<string, number> {
  const status = readFileSync('/proc/self/status', 'utf8')
  const mb = (name: string) => Math.round(Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]) / 1024)
  return { rss_mb: mb('VmRSS'), anonymous_mb: mb('RssAnon'), mapped_file_mb: mb('RssFile') }
}

async function open(folder: string): Promise<{ store: Store; catalogue: Catalogue; ms: number }> {
  const began = performance.now()
  const store = new Store(folder, pino({ level: 'silent' }))
  await store.start()
  const catalogue = new Catalogue(store)
  return { store, catalogue, ms: round(performance.now() - began) }
}

async function fill(folder: string): Promise<void> {
  const { store, catalogue } = await open(folder)
  const began = performance.now()
  for (let n = 0; n < ENTRIES; n += BATCH) {
    store.transaction(() => {
      for (let i = n; i < Math.min(n + BATCH, ENTRIES); i++) catalogue.create(row(i))
    })
  }
  await store.stop()
  process.stdout.write(JSON.stringify({ fill_s: Math.round((performance.now() - began) / 1000) }))
}

/** Lists of a time range: everywhere in time, of every width, with filters, on near and on deep pages. */
function lists(catalogue: Catalogue) {
  const span = ENTRIES * EVERY_MS
  const page = { limit: 100, offset: 0 }
  const range = (n: number, share: number) => {
    const from = FIRST + Math.floor(((n * 0.618034) % 1) * span * (1 - share))
    return { from, to: from + Math.floor(span * share) }
  }
  const cases: Record<string, (n: number) => ListQuery> = {
    newest: () => page,
    hour: (n) => ({ ...page, ...range(n, 3_600_000 / span) }),
    day: (n) => ({ ...page, ...range(n, Math.min(1, 86_400_000 / span)) }),
    half_of_all: (n) => ({ ...page, ...range(n, 0.5) }),
    half_of_all_any_offset: (n) => ({ ...page, ...range(n, 0.5), offset: (n * 7919) % Math.ceil(ENTRIES * 0.45) }),
    range_of_one_camera: (n) => ({ ...page, ...range(n, 0.3), cameras: [n % CAMERAS], offset: (n * 31) % 5000 }),
    range_defect: (n) => ({ ...page, ...range(n, 0.4), state: 'defect', offset: n % 500 }),
    range_tagged_timelapse: (n) => ({ ...page, ...range(n, 0.4), types: ['timelapse'], tagged: true }),
    range_all_types: (n) => ({ ...page, ...range(n, 0.2), types: MEDIA_TYPES, oldestFirst: true }),
    offset_90_percent: () => ({ ...page, types: MEDIA_TYPES, offset: Math.floor(ENTRIES * 0.9) }),
    page_of_1000: (n) => ({ limit: 1000, offset: (n * 1009) % 50_000, ...range(n, 0.5) }),
  }
  return Object.fromEntries(
    Object.entries(cases).map(([name, query]) => [
      name,
      times(name === 'page_of_1000' ? 50 : ROUNDS, (n) => catalogue.list(query(n))),
    ]),
  )
}

/** A search looks at many entries: how long it takes, and the longest that everybody else waited. CPU time, as with the lists. */
async function searched(store: Store, catalogue: Catalogue, folder: string) {
  const [bus, log] = [new Bus(), pino({ level: 'silent' })]
  const categories = new Categories(store, join(folder, 'categories.json'), bus, log)
  categories.start()
  const search = new Search(catalogue, new Tags(store, catalogue, categories, bus))
  let [longest, running] = [0, true]
  for (let n = 0; n < 3; n++) await search.find({ limit: 100, offset: 0, text: 'warm-up' })
  let before = process.cpuUsage()
  const watch = () => {
    const { user, system } = process.cpuUsage(before)
    longest = Math.max(longest, (user + system) / 1000)
    before = process.cpuUsage()
    if (running) setImmediate(watch)
  }
  setImmediate(watch)
  const began = performance.now()
  const { total, exact } = await search.find({ limit: 100, offset: 0, text: '_99' })
  running = false
  return { ms: round(performance.now() - began), longest_turn_cpu_ms: round(longest), found: total, exact }
}

async function measure(folder: string): Promise<void> {
  const { store, catalogue, ms } = await open(folder)
  const started = memory()
  const list = lists(catalogue)
  const read = memory()
  const search = await searched(store, catalogue, folder)
  const oldest = times(20, () => catalogue.oldestUntagged().next())
  const insert = times(ROUNDS, (n) => catalogue.create(row(ENTRIES + n)))
  const update = times(ROUNDS, (n) => catalogue.update(((n * 3331) % ENTRIES) + 1, { tag_markers: n % 3, state: 'ready' }))
  const remove = times(ROUNDS, (n) => catalogue.remove(((n * 7331) % ENTRIES) + 1))
  const file_mb = Math.round(statSync(join(folder, 'camera.mdb')).size / 2 ** 20)
  await store.stop()
  const { page_of_1000: _, ...ranges } = list
  const worst = (of: (times: Times) => number) => Math.max(...Object.values(ranges).map(of))
  const measured = { start_ms: ms, range_list_p99_cpu_ms: worst(({ p99_cpu_ms }) => p99_cpu_ms) }
  const beyond = Object.entries(LIMITS).filter(([name, limit]) => !(measured[name as keyof typeof LIMITS] < limit))
  const memoryUsed = { after_start: started, after_lists: read, at_the_end: memory() }
  const figures = {
    entries: ENTRIES,
    ...measured,
    list,
    search,
    oldest_untagged: oldest,
    insert,
    update,
    remove,
    memory: memoryUsed,
    file_mb,
  }
  process.stdout.write(`${JSON.stringify({ ...figures, beyond: Object.fromEntries(beyond) }, null, 2)}\n`)
  if (beyond.length > 0) process.exitCode = 1
}

// A process of its own fills the file, so that memory and start-up are those of a server that opens it.
const [, , task, given] = process.argv
if (task === 'fill') await fill(String(given))
else {
  const folder = mkdtempSync(join(tmpdir(), 'catalogue-bench-'))
  try {
    const filled = spawnSync(process.execPath, [...process.execArgv, import.meta.filename, 'fill', folder], { encoding: 'utf8' })
    if (filled.status !== 0) throw new Error(filled.stderr)
    process.stderr.write(`filled: ${filled.stdout}\n`)
    await measure(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
