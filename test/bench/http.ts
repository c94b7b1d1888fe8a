/**
 * CPU and time of an authenticated `GET /api/status`: our server against the same answer from Fastify and Express, all in one run, in
 * rounds that alternate, so that what else happens on the machine meets all of them. Then Basic credentials from 50 clients at once, and
 * the event loop while many log in. Prints one JSON object. Run by `make bench-http`.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { SignJWT } from 'jose'
import type { Test } from 'tap'
import { call, login, until } from '../support/api.ts'
import { usage } from '../support/process.ts'
import { ADMIN_PASSWORD, startServer, type TestServer } from '../support/server.ts'
import type { Job, Seen } from './http-load.ts'

const ROUNDS = 5
const ROUND_MS = 2000
const WARM_UP_MS = 2000
const CONNECTIONS = 50
const LOGINS = 32
/** The event loop without logins, for comparison: what else runs on the machine delays it too. */
const QUIET_MS = 3000
const PEERS = ['fastify', 'fastify_remembering', 'express'] as const
/** Of our requests per CPU second to Fastify's. */
const TARGET = 1.8

interface Subject {
  readonly name: string
  readonly pid: number
  readonly port: number
  readonly authorization: string
}

interface Round extends Omit<Seen, 'body'> {
  readonly cpu: number
}

const cleanups: (() => unknown)[] = []
// The test support wants somebody who cleans up at the end.
const owner = { teardown: (work: () => unknown) => cleanups.unshift(work) } as unknown as Test

async function load(job: Job): Promise<Seen> {
  const script = join(import.meta.dirname, 'http-load.ts')
  const { stdout } = await promisify(execFile)(process.execPath, ['--import=tsx', script, JSON.stringify(job)])
  return JSON.parse(stdout) as Seen
}

async function round({ pid, port, authorization }: Subject, ms: number): Promise<Round & { body: string }> {
  const before = usage(pid).cpuSeconds
  const seen = await load({ port, authorization, connections: CONNECTIONS, ms })
  return { ...seen, cpu: usage(pid).cpuSeconds - before }
}

async function startPeer(name: string, folder: string): Promise<Subject> {
  const secret = 'a secret of at least thirty-two bytes'
  const child: ChildProcess = spawn(
    process.execPath,
    ['--import=tsx', join(import.meta.dirname, 'http-peer.ts'), name, secret, folder],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, NODE_ENV: 'production' } },
  )
  cleanups.unshift(() => child.kill())
  if (child.stdout === null) throw new Error('no standard output')
  const [port] = await once(createInterface({ input: child.stdout }), 'line', { signal: AbortSignal.timeout(20_000) })
  const token = await new SignJWT({ sid: 'session' })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject('admin')
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(Buffer.from(secret))
  return { name, pid: child.pid ?? 0, port: Number(port), authorization: `Bearer ${token}` }
}

/** The shape of a JSON value: who answers less would be quicker. */
function shape(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return null
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shape(inner)]))
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

function digits(value: number, places = 2): number {
  return Number(value.toFixed(places))
}

async function compare(subjects: readonly Subject[]) {
  const rounds = new Map<string, Round[]>(subjects.map(({ name }) => [name, []]))
  const shapes = new Set<string>()
  for (const subject of subjects) {
    const { body } = await round(subject, WARM_UP_MS)
    shapes.add(JSON.stringify(shape(JSON.parse(body))))
  }
  if (shapes.size !== 1) throw new Error(`the answers differ: ${[...shapes].join(' ')}`)
  for (let i = 0; i < ROUNDS; i++) {
    for (const subject of subjects) rounds.get(subject.name)?.push(await round(subject, ROUND_MS))
  }
  const rate = (name: string) => median((rounds.get(name) ?? []).map(({ requests, cpu }) => requests / cpu))
  const figures = subjects.map(({ name }) => {
    const all = rounds.get(name) ?? []
    return [
      name,
      {
        requests_per_second: Math.round(median(all.map(({ requests, seconds }) => requests / seconds))),
        requests_per_cpu_second: Math.round(rate(name)),
        cpu_us_per_request: digits(1e6 / rate(name)),
        p99_ms: median(all.map(({ p99_ms }) => p99_ms)),
      },
    ]
  })
  const ratios = PEERS.map((name) => [`to_${name}`, digits(rate('camera_server') / rate(name))])
  return {
    status_with_bearer: Object.fromEntries(figures),
    ratio_of_requests_per_cpu_second: Object.fromEntries(ratios),
    target_to_fastify: TARGET,
    target_met: rate('camera_server') / rate('fastify') >= TARGET,
  }
}

async function withBasic(server: TestServer) {
  const authorization = `Basic ${Buffer.from(`admin:${ADMIN_PASSWORD}`).toString('base64')}`
  await call(`${server.base}/api/status`, 'GET', { authorization })
  const { body: _, ...figures } = await load({ port: server.ports.http, authorization, connections: CONNECTIONS, ms: ROUND_MS })
  return figures
}

/** Runs inside the server: at SIGUSR2 it tells the delays of the event loop since the last time, in ms. */
const PROBE = `
import { monitorEventLoopDelay } from 'node:perf_hooks'
const delays = monitorEventLoopDelay({ resolution: 1 })
delays.enable()
process.on('SIGUSR2', () => {
  const ms = (ns) => Math.round(ns / 1e4) / 100
  process.stderr.write(JSON.stringify({ lag: { p50_ms: ms(delays.percentile(50)), p99_ms: ms(delays.percentile(99)), max_ms: ms(delays.max) } }) + '\\n')
  delays.reset()
})`

async function lagDuringLogins() {
  const probe = `--import=data:text/javascript,${encodeURIComponent(PROBE)}`
  const server = await startServer(owner, { args: ['--rate-limits', 'off', '--log-level', 'warn'], env: { NODE_OPTIONS: probe } })
  await login(server)
  const lag = async () => {
    const reports = () => server.log.filter((line) => line.startsWith('{"lag"'))
    const count = reports().length
    process.kill(server.pid, 'SIGUSR2')
    const all = await until(reports, (lines) => lines.length > count, 'a report of the event loop')
    return (JSON.parse(all.at(-1) ?? '') as { lag: unknown }).lag
  }
  await lag()
  await delay(QUIET_MS)
  const quiet = await lag()
  const began = performance.now()
  await Promise.all(Array.from({ length: LOGINS }, () => login(server)))
  const seconds = digits((performance.now() - began) / 1000)
  return { logins: LOGINS, seconds, event_loop: await lag(), event_loop_without: quiet }
}

const folder = mkdtempSync(join(tmpdir(), 'bench-http-'))
cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
try {
  const server = await startServer(owner, { args: ['--rate-limits', 'off', '--log-level', 'warn'] })
  const { token } = await login(server)
  const ours = { name: 'camera_server', pid: server.pid, port: server.ports.http, authorization: `Bearer ${token}` }
  const peers: Subject[] = []
  for (const name of PEERS) peers.push(await startPeer(name, folder))
  const compared = await compare([ours, ...peers])
  const basic = await withBasic(server)
  await server.stop()
  const report = {
    cores: cpus().length,
    node: process.version,
    ...compared,
    basic_50_clients: basic,
    logins: await lagDuringLogins(),
  }
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
} finally {
  for (const work of cleanups) await work()
}
