/**
 * One virtual machine with the image in it. A reset of the guest ends QEMU (`-no-reboot`), and the machine is switched on anew by itself: a warm reset
 * takes three times as long without KVM. Each power-on writes a serial log of its own; `log` is all of them, one behind the other.
 */
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { type Accelerator, probeAccel, qemuArgs } from '../../../scripts/image/qemu.ts'
import { MONITOR_ARGS, Monitor, resumeArgs } from './monitor.ts'
import { freePorts } from './ports.ts'
import { type Result, SHELL_CREDENTIALS, Shell } from './shell.ts'

/** What is forwarded to loopback, by the name under which the tests ask for it. `closed` and `ssh` lead to ports that the firewall must not let in. */
export const GUEST_PORTS = {
  http: 8080,
  https: 8081,
  dashboard: 8082,
  http80: 80,
  https443: 443,
  rtsp: 554,
  rtsps: 322,
  ssh: 22,
  closed: 9999,
} as const
export type PortName = keyof typeof GUEST_PORTS

/** Without KVM a start takes half a minute; with ten other programs at work beside it, it has been seen to take four. */
export const BOOT_LIMIT_MS = 480_000
/** A machine that starts over and over is broken. */
const MAX_BOOTS = 40
const RUN_LIMIT_MS = 60_000
const ATTACH_LIMIT_MS = 10_000
const POLL_MS = 100

export interface MachineOptions {
  readonly disk: string
  /** For the logs. */
  readonly folder: string
  /** A short path: the name of a Unix socket has 107 characters at most. */
  readonly socketPath: string
  readonly memoryMb?: number
  /** What `suspend` wrote: at its first start the machine goes on from there. */
  readonly state?: string
  /** Further SMBIOS strings. */
  readonly smbios?: readonly string[]
}

export class Machine {
  readonly shell: Shell
  #process: ChildProcess | undefined
  #monitor: Monitor | undefined
  /** Kept over power cuts: a client's address stays good. */
  #ports: Readonly<Record<PortName, number>> | undefined
  #accel: Accelerator = 'tcg,thread=multi'
  #boots = 0
  #poweredOnAt = 0
  /** The end of the process is meant: no switching on. */
  #ending = false
  #fault: Error | undefined

  constructor(readonly options: MachineOptions) {
    this.shell = new Shell(options.socketPath)
  }

  get base(): string {
    return `http://127.0.0.1:${this.port('http')}`
  }

  /** Power-ons so far. */
  get boots(): number {
    return this.#boots
  }

  /** Of the QEMU process that runs now. */
  get pid(): number | undefined {
    return this.#process?.pid
  }

  /** Milliseconds since the last power-on. */
  get uptimeMs(): number {
    return performance.now() - this.#poweredOnAt
  }

  port(name: PortName): number {
    if (!this.#ports) throw new Error('the machine was never started')
    return this.#ports[name]
  }

  async start(): Promise<void> {
    if (this.#process) throw new Error('the machine runs already')
    this.#accel = await probeAccel()
    if (!this.#ports) {
      const names = Object.keys(GUEST_PORTS) as PortName[]
      const free = await freePorts(names.length)
      this.#ports = Object.fromEntries(names.map((name, i) => [name, free[i] ?? 0])) as Record<PortName, number>
    }
    this.#ending = false
    this.#powerOn()
  }

  /** Pulls the plug: SIGKILL. What the guest had not flushed to the disk is lost. */
  async cut(): Promise<void> {
    this.#ending = true
    const child = this.#process
    if (!child) return
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
    this.#process = undefined
    this.shell.close()
  }

  /** Writes down everything that the machine has in its memory, and ends it where it stands. */
  async suspend(state: string): Promise<void> {
    const child = this.#process
    if (!child || !this.#monitor) throw new Error('the machine does not run')
    await this.#monitor.save(state)
    this.#ending = true
    const exit = once(child, 'exit')
    await this.#monitor.execute('quit')
    await exit
    this.#process = undefined
    this.shell.close()
  }

  /** The command's output; throws where it ends with another status than 0. */
  async run(command: string, limitMs = RUN_LIMIT_MS): Promise<string> {
    const { status, output } = await this.tryRun(command, limitMs)
    if (status !== 0) throw new Error(`\`${command}\` ended with ${status}: ${output}`)
    return output
  }

  async tryRun(command: string, limitMs = RUN_LIMIT_MS): Promise<Result> {
    this.check()
    return this.shell.run(command, limitMs)
  }

  /** Polls until `ask` gives something; where it throws, that is the answer `not yet`. */
  async wait<T>(what: string, limitMs: number, ask: () => Promise<T | undefined> | T | undefined): Promise<T> {
    const deadline = performance.now() + limitMs
    let last: unknown
    for (;;) {
      this.check()
      try {
        const value = await ask()
        if (value !== undefined) return value
        last = undefined
      } catch (error) {
        last = error
      }
      if (performance.now() > deadline) {
        throw new Error(`${what}: not within ${limitMs} ms; on the console last:\n${this.log.slice(-1500)}`, { cause: last })
      }
      await delay(POLL_MS)
    }
  }

  /** Waits for words on the console behind `from` (a former length of `log`). */
  waitForLog(words: string | RegExp, limitMs: number, from = 0): Promise<void> {
    return this.wait(`${words} on the console`, limitMs, () => {
      const text = this.log.slice(from)
      return (typeof words === 'string' ? text.includes(words) : words.test(text)) || undefined
    }).then(() => undefined)
  }

  /** Waits until the machine has been switched on that many times. */
  waitForBoot(boots: number, limitMs: number): Promise<void> {
    return this.wait(`power-on ${boots}`, limitMs, () => this.#boots >= boots || undefined).then(() => undefined)
  }

  get log(): string {
    return Array.from({ length: this.#boots }, (_, i) => this.serialOf(i + 1)).join('')
  }

  /** What was on the console in one power-on. */
  serialOf(boot: number): string {
    const file = this.#file(`serial-${boot}.log`)
    return existsSync(file) ? readFileSync(file, 'latin1') : ''
  }

  /** Throws what ended the machine for good. */
  check(): void {
    if (this.#fault) throw this.#fault
    if (!this.#process) throw new Error('the machine does not run')
  }

  #file(name: string): string {
    return join(this.options.folder, name)
  }

  #powerOn(): void {
    const boot = ++this.#boots
    const args = qemuArgs({
      disk: this.options.disk,
      memoryMb: this.options.memoryMb ?? 1024,
      cpus: 2,
      accel: this.#accel,
      serialLog: this.#file(`serial-${boot}.log`),
      forwards: Object.entries(GUEST_PORTS).map(([name, guestPort]) => ({ hostPort: this.port(name as PortName), guestPort })),
      shell: { socketPath: this.options.socketPath },
      smbios: [...SHELL_CREDENTIALS, ...(this.options.smbios ?? [])],
      watchdog: true,
      extra: [...MONITOR_ARGS, ...(this.options.state && boot === 1 ? resumeArgs(this.options.state) : [])],
    })
    const complaints = openSync(this.#file('qemu.log'), 'a')
    const child = spawn('qemu-system-x86_64', args, { stdio: ['pipe', 'pipe', complaints] }) as ChildProcessByStdio<
      Writable,
      Readable,
      null
    >
    closeSync(complaints)
    this.#process = child
    this.#monitor = new Monitor(child.stdin, child.stdout)
    this.#poweredOnAt = performance.now()
    this.shell.attach(ATTACH_LIMIT_MS)
    child.on('error', (error) => {
      this.#fault = error
    })
    child.on('exit', (code, signal) => this.#ended(child, code, signal))
  }

  #ended(child: ChildProcess, code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#ending || this.#process !== child) return
    this.shell.close()
    if (code !== 0) {
      this.#fault = new Error(`QEMU ended with ${code ?? signal}: ${readFileSync(this.#file('qemu.log'), 'utf8').slice(-1000)}`)
    } else if (this.#boots >= MAX_BOOTS) {
      this.#fault = new Error(`the machine was switched on ${MAX_BOOTS} times`)
    } else {
      this.#powerOn()
    }
  }
}
