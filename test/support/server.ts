/** Starts the built server for a test: free ports, a data folder of its own, and a clean end that is checked. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import type { ReadyPorts } from '../../app/server/listeners.ts'

export const ADMIN_PASSWORD = 'Correct-Horse-9'
const ROOT = join(import.meta.dirname, '../..')
const QUICK_PASSWORDS = join(import.meta.dirname, 'quick-passwords.cjs')
/** Nothing is measured by it: a start takes a second where nobody else computes. */
const START_TIMEOUT_MS = 120_000

export interface ServerOptions {
  /** Further options of `camera-server`; they win over the defaults. */
  readonly args?: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  /** True: the factory password stays in force. */
  readonly factory?: boolean
  /** What to start instead of the built server: a program and its leading words; `cwd` is where. */
  readonly command?: readonly [string, ...string[]]
  readonly cwd?: string
  /** For a program under emulation. */
  readonly startTimeoutMs?: number
  /** An existing data folder, for restarts; it is then not removed at the end. */
  readonly dataDir?: string
}

export interface TestServer {
  readonly ports: ReadyPorts
  readonly base: string
  readonly dataDir: string
  readonly pid: number
  /** What the server has logged so far, as lines of JSON. */
  readonly log: string[]
  /** SIGTERM; resolves to the exit status and how long it took. */
  stop(): Promise<{ code: number | null; ms: number }>
  /** SIGKILL to the server alone. */
  kill(): Promise<void>
}

export async function startServer(t: Test, options: ServerOptions = {}): Promise<TestServer> {
  const scratch = mkdtempSync(join(tmpdir(), 'camera-test-'))
  const dataDir = options.dataDir ?? join(scratch, 'data')
  const password = join(scratch, 'password')
  writeFileSync(password, `${ADMIN_PASSWORD}\n`)
  const ports = ['--http-port', '--https-port', '--rtsp-port', '--rtsps-port', '--dashboard-port'].flatMap((name) => [name, '0'])
  const login = options.factory ? [] : ['--admin-password-file', password]
  const given = options.args ?? []
  const defaults = [...ports, '--bind', '127.0.0.1', '--data-dir', dataDir, ...login]
  const [program, ...words] = options.command ?? [join(ROOT, 'dist/camera-server')]
  const child = spawn(program, [...words, ...withoutOverridden(defaults, given), ...given], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  })
  const log: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => log.push(line))
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) await ended(child, 'SIGTERM')
    rmSync(scratch, { recursive: true, force: true })
  })
  const ready = await readyLine(child, log, options.startTimeoutMs ?? START_TIMEOUT_MS)
  return {
    ports: ready,
    base: `http://127.0.0.1:${ready.http}`,
    dataDir,
    pid: child.pid ?? 0,
    log,
    stop: () => ended(child, 'SIGTERM'),
    kill: async () => void (await ended(child, 'SIGKILL')),
  }
}

/** The same, but for what its passwords cost: for tests that are not about that. */
export function startQuickServer(t: Test, options: Omit<ServerOptions, 'command'> = {}): Promise<TestServer> {
  const bundle = join(ROOT, 'dist/camera-server.cjs')
  return startServer(t, { ...options, command: [process.execPath, '--require', QUICK_PASSWORDS, bundle] })
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<{ code: number | null; ms: number }> {
  const began = performance.now()
  if (child.exitCode === null && child.signalCode === null) {
    const exit = once(child, 'exit')
    child.kill(signal)
    await exit
  }
  return { code: child.exitCode, ms: performance.now() - began }
}

async function readyLine(child: ChildProcess, log: string[], timeoutMs: number): Promise<TestServer['ports']> {
  if (!child.stdout) throw new Error('no standard output')
  const lines = createInterface({ input: child.stdout })
  const first = await Promise.race([
    once(lines, 'line', { signal: AbortSignal.timeout(timeoutMs) }),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`the server exited with ${code}:\n${log.join('\n')}`))),
  ])
  return JSON.parse(String(first[0])) as TestServer['ports']
}

function withoutOverridden(defaults: string[], given: readonly string[]): string[] {
  return defaults.filter((_, i) => !given.includes(defaults[i % 2 === 0 ? i : i - 1] ?? ''))
}
