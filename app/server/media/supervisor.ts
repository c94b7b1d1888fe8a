/**
 * Owns the helper process: starts it, watches it, restarts it with growing delays, and tells its users when it is up so that they apply
 * again what should run. Nobody else talks to the helper but through `call` and `snapshot`.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { backoff } from '../backoff.ts'
import type { Component } from '../component.ts'
import { errorText, StartupError } from '../errors.ts'
import type { Logger } from '../log.ts'
import { Connection } from './connection.ts'
import { type HelperInput, type HelperPhase, nextPhase, restartDelay } from './machine.ts'
import {
  HELPER_ERROR,
  HelperDown,
  HelperError,
  type HelperInfo,
  type HelperLogLevel,
  HelperTimeout,
  type Methods,
  type Notifications,
  type RequestHandlers,
  type Requests,
} from './protocol.ts'

/** One that cannot start exits; this is for a board that is still busy starting everything else. */
const CONNECT_TIMEOUT_MS = 30_000
const PING_EVERY_MS = 2000
const PING_TIMEOUT_MS = 5000
const EXIT_TIMEOUT_MS = 3500
/** How often it is said that a killed helper does not end: at first, and at last. */
const FIRST_STUCK_MS = 5000
const LAST_STUCK_MS = 300_000
/** A helper that ran this long was fine; the next failure counts as the first. */
const STABLE_AFTER_MS = 30_000

/** Where RTSP is spoken, and where RTSPS is. */
export interface RtspPorts {
  readonly plain: number
  readonly tls: number
}

export interface RtspSettings {
  readonly max_connections: number
  readonly basic: 'always' | 'tls' | 'never'
}

export interface RtspOptions {
  readonly address: string
  /** In order of preference: the next ones are tried where those before may not be bound. */
  readonly ports: readonly RtspPorts[]
  readonly realm: string
  /** As it is when the helper starts; `applyRtsp` brings another to one that runs. */
  readonly access: () => RtspSettings
  /** Of RTSPS, as it is when the helper starts. */
  readonly certificate: () => { readonly certFile: string; readonly keyFile: string }
}

type SupervisorEvents = {
  /** Connected and listening: apply the desired state. */
  up: []
  /** Gone, whatever the reason; `up` follows unless the server stops. */
  down: []
} & { [N in keyof Notifications]: [Notifications[N]] }

export class MediaSupervisor extends EventEmitter<SupervisorEvents> implements Component {
  private phase: HelperPhase = 'stopped'
  private child: ChildProcess | undefined
  private connection: Connection | undefined
  private failures = 0
  private upSince = 0
  private timer: NodeJS.Timeout | undefined
  private helperInfo: HelperInfo | undefined
  /** As given by the helper at its first start; kept over its restarts. */
  private ports: RtspPorts | undefined
  private readonly handlers: RequestHandlers = {}

  constructor(
    /** The helper's executable. */
    private readonly executable: string,
    private readonly rtsp: RtspOptions,
    private readonly log: Logger,
    private readonly onPid: (pid: number | null) => void,
  ) {
    super()
  }

  /** Resolves when the helper answers and listens; a port that is taken is a `StartupError`. */
  async start(): Promise<void> {
    this.step('start')
    try {
      await this.launch()
    } catch (error) {
      await this.stop()
      throw new StartupError(`the media helper does not start: ${errorText(error)}`)
    }
  }

  async stop(): Promise<void> {
    this.step('stop')
    clearTimeout(this.timer)
    await this.shutDown()
  }

  get info(): HelperInfo | null {
    return this.phase === 'up' ? (this.helperInfo ?? null) : null
  }

  get rtspPorts(): RtspPorts {
    return this.ports ?? { plain: 0, tls: 0 }
  }

  async call<M extends keyof Methods>(method: M, params: Methods[M]['params']): Promise<Methods[M]['result']> {
    if (!this.connection) throw new HelperDown()
    return this.connection.call(method, params)
  }

  async snapshot(camera: number, quality: number): Promise<{ result: Methods['snapshot.take']['result']; binary: Buffer }> {
    if (!this.connection) throw new HelperDown()
    return this.connection.callBinary('snapshot.take', { camera, quality })
  }

  async thumbnail(
    params: Methods['media.thumbnail']['params'],
  ): Promise<{ result: Methods['media.thumbnail']['result']; binary: Buffer }> {
    if (!this.connection) throw new HelperDown()
    return this.connection.callBinary('media.thumbnail', params)
  }

  /** Answers the helper's requests of that name from now on; what the handler throws as `HelperError` is the answer's error. */
  handle<R extends keyof Requests>(method: R, handler: NonNullable<RequestHandlers[R]>): void {
    this.handlers[method] = handler
  }

  private async answer(method: string, params: unknown): Promise<unknown> {
    const handler = Object.hasOwn(this.handlers, method) ? this.handlers[method as keyof Requests] : undefined
    if (!handler) throw new HelperError(HELPER_ERROR.method_not_found, 'no such method')
    try {
      return await handler(params as never)
    } catch (error) {
      if (!(error instanceof HelperError)) this.log.error({ method, error: errorText(error) }, 'a request of the helper failed')
      throw error
    }
  }

  /** Whoever hears of something and fails over it must not take the connection, and every recording, with it. */
  private tell(name: keyof SupervisorEvents, ...params: unknown[]): void {
    for (const listener of this.rawListeners(name)) {
      try {
        ;(listener as (...params: unknown[]) => void)(...params)
      } catch (error) {
        this.log.error({ event: name, error: errorText(error) }, 'an event of the helper could not be dealt with')
      }
    }
  }

  private tellPid(pid: number | null): void {
    try {
      this.onPid(pid)
    } catch (error) {
      this.log.error({ pid, error: errorText(error) }, 'the process of the helper cannot be noted')
    }
  }

  private step(input: HelperInput): boolean {
    const next = nextPhase(this.phase, input)
    if (next === undefined) return false
    this.log.debug({ from: this.phase, to: next }, 'helper phase')
    this.phase = next
    return true
  }

  private async launch(): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'camera-media-'))
    const path = join(folder, 'media.sock')
    try {
      const child = spawn(this.executable, ['--socket', path, '--log-level', helperLevel(this.log)], {
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      this.child = child
      this.relayLog(child)
      child.on('error', (error) => this.log.error({ error: error.message }, 'helper cannot be executed'))
      child.on('exit', (code, signal) => {
        this.log.info({ code, signal }, 'helper exited')
        if (this.child === child) this.connection?.end('helper exited')
      })
      this.tellPid(child.pid ?? null)
      const connection = new Connection(
        await connectTo(path, child),
        (name, params) => this.tell(name, params),
        (method, params) => this.answer(method, params),
        (why) => this.lost(why),
      )
      this.connection = connection
      this.helperInfo = await connection.call('helper.info', {})
      this.ports = await this.listen(connection, this.rtsp.access())
    } catch (error) {
      this.connection?.end('start failed')
      await this.shutDown()
      throw error
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
    if (!this.step('connected')) return
    this.upSince = performance.now()
    this.log.info({ pid: this.helperInfo?.pid, encoder: this.helperInfo?.encoder, rtsp: this.ports }, 'helper is up')
    this.watch(this.connection)
    this.tell('up')
  }

  /** Tells the helper that our logger has another level. */
  async applyLogLevel(): Promise<void> {
    if (this.phase === 'up') await this.call('log.set_level', { level: helperLevel(this.log) })
  }

  /** For connections from now on. A helper that is not there gets what `access` says when it is back. */
  async applyRtsp(access: RtspSettings): Promise<void> {
    if (this.phase === 'up' && this.connection) await this.listen(this.connection, access)
  }

  private async listen(connection: Connection, access: RtspSettings): Promise<RtspPorts> {
    const { ports, certificate, access: _access, ...options } = this.rtsp
    const candidates = this.ports === undefined ? ports : [this.ports]
    const { certFile: certificate_file, keyFile: key_file } = certificate()
    for (const [index, { plain, tls }] of candidates.entries()) {
      try {
        const listening = { ...options, ...access, port: plain, tls_port: tls, certificate_file, key_file }
        const { port, tls_port } = await connection.call('rtsp.start', listening)
        return { plain: port, tls: tls_port }
      } catch (error) {
        const errno = error instanceof HelperError ? error.data.errno : undefined
        if (errno === 'EACCES' && index < candidates.length - 1) continue
        throw new Error(`cannot listen on ${options.address}:${plain} (rtsp) and ${tls} (rtsps): ${errorText(error)}`)
      }
    }
    throw new Error('no RTSP port to listen on')
  }

  /** Pings until the connection ends: a helper that hangs is as bad as one that is gone. */
  private watch(connection: Connection): void {
    const again = () => {
      if (this.connection === connection) this.timer = setTimeout(ping, PING_EVERY_MS)
    }
    const ping = () => {
      connection.callBinary('helper.ping', {}, PING_TIMEOUT_MS).then(again, (error) => {
        if (!(error instanceof HelperTimeout)) return again()
        this.log.error('helper hangs')
        this.child?.kill('SIGKILL')
        // One that is stuck in the kernel does not end yet.
        connection.end('helper hangs')
      })
    }
    ping()
  }

  private lost(why: string): void {
    this.connection = undefined
    clearTimeout(this.timer)
    const wasUp = this.phase === 'up'
    if (!wasUp || !this.step('lost')) return
    if (performance.now() - this.upSince > STABLE_AFTER_MS) this.failures = 0
    this.log.error({ why }, 'helper lost')
    this.tell('down')
    this.scheduleRestart()
  }

  private scheduleRestart(): void {
    this.failures += 1
    this.timer = setTimeout(() => {
      void this.restart()
    }, restartDelay(this.failures))
  }

  private async restart(): Promise<void> {
    await this.shutDown()
    if (!this.step('retry')) return
    try {
      await this.launch()
    } catch (error) {
      this.log.error({ error: errorText(error), failures: this.failures }, 'helper does not start')
      if (this.step('lost')) this.scheduleRestart()
    }
  }

  /** Ends the connection, waits for the helper to finalise, and kills it when it does not. */
  private async shutDown(): Promise<void> {
    const child = this.child
    this.connection?.end('stopping')
    this.connection = undefined
    if (child && child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit')
      const patience = new AbortController()
      const late = delay(EXIT_TIMEOUT_MS, 'late', { signal: patience.signal }).catch(() => 'gone')
      child.kill('SIGTERM')
      if ((await Promise.race([exited, late])) === 'late') {
        child.kill('SIGKILL')
        await this.whileStuck(child, exited)
      }
      patience.abort()
    }
    this.child = undefined
    this.tellPid(null)
  }

  /** Stuck in a driver: another one would find the cameras taken, so there is nothing to do but to wait, and to say so. */
  private async whileStuck({ pid }: ChildProcess, exited: Promise<unknown>): Promise<void> {
    const since = performance.now()
    let timer: NodeJS.Timeout | undefined
    const sayLater = (time: number) => {
      timer = setTimeout(
        () => {
          const waited_ms = Math.round(performance.now() - since)
          this.log.error({ pid, waited_ms }, 'the helper was killed, but the kernel does not let it go')
          sayLater(time + 1)
        },
        backoff(time, FIRST_STUCK_MS, LAST_STUCK_MS),
      )
    }
    sayLater(1)
    try {
      await exited
    } finally {
      clearTimeout(timer)
    }
  }

  /** The helper's log lines become ours. */
  private relayLog(child: ChildProcess): void {
    if (!child.stderr) return
    createInterface({ input: child.stderr }).on('line', (line) => {
      try {
        const { level, msg, component: part, ...rest } = JSON.parse(line) as { level: string; msg: string; component: string }
        const write = level === 'error' || level === 'warn' || level === 'debug' ? this.log[level] : this.log.info
        write.call(this.log, { part, ...rest }, msg)
      } catch {
        this.log.warn({ line: line.slice(0, 500) }, 'helper output')
      }
    })
  }
}

/** What the helper need not write, because it would not be passed on. */
function helperLevel(log: Logger): HelperLogLevel {
  return (['debug', 'info', 'warn'] as const).find((level) => log.isLevelEnabled(level)) ?? 'error'
}

/** Connects as soon as the helper listens. */
async function connectTo(path: string, child: ChildProcess): Promise<Socket> {
  const deadline = performance.now() + CONNECT_TIMEOUT_MS
  for (;;) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) throw new Error('it exited at once')
    try {
      const socket = connect(path)
      await once(socket, 'connect')
      return socket
    } catch (error) {
      if (performance.now() > deadline) throw error
      await delay(5)
    }
  }
}
