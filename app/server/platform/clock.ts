/**
 * The wall clock, which may be wrong until the network has told the time, and may jump when it does. Everything that measures uses
 * `monotonic()`; everything that names a moment uses `now()`, which tells of a jump before it returns a time from behind it.
 */
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import type { Logger } from '../log.ts'

const TICK_MS = 1000
/** Slewing corrects less than that between two looks. */
const STEP_MS = 2000
/** systemd-timesyncd keeps this folder while it runs, and the file in it exists once a time server has answered in this boot. */
const TIMESYNC_FOLDER = 'run/systemd/timesync'

export interface ClockOptions {
  /** Below which /proc and /run lie. */
  readonly root?: string
  /** Epoch milliseconds. */
  readonly wall?: () => number
  /** Milliseconds that never jump. */
  readonly monotonic?: () => number
  /** Epoch milliseconds; a clock before that is wrong for certain. */
  readonly builtAt: number
}

export class Clock implements Component {
  private readonly root: string
  private readonly wall: () => number
  private readonly steady: () => number
  /** Epoch milliseconds; earlier times are wrong for certain. */
  readonly builtAt: number
  private timer: NodeJS.Timeout | undefined
  private boot: string | undefined
  /** What lies between `steady()` and the time since boot. */
  private base = 0
  private difference: number
  private synced = false

  constructor(
    private readonly bus: Bus,
    private readonly log: Logger,
    { root = '/', wall = Date.now, monotonic = () => performance.now(), builtAt }: ClockOptions,
  ) {
    this.root = root
    this.wall = wall
    this.steady = monotonic
    this.builtAt = builtAt
    this.difference = wall() - monotonic()
  }

  start(): void {
    this.boot = this.read('proc/sys/kernel/random/boot_id') ?? randomUUID()
    const uptime = Number.parseFloat(this.read('proc/uptime') ?? '')
    this.base = Number.isFinite(uptime) ? uptime * 1000 - this.steady() : 0
    this.difference = this.wall() - this.steady()
    this.synced = this.isSynchronised()
    this.log.info({ boot_id: this.boot, synchronised: this.synced, certain: this.certain }, 'clock')
    this.timer = setInterval(() => this.look(), TICK_MS)
  }

  stop(): void {
    clearInterval(this.timer)
  }

  now(): Date {
    this.look()
    return new Date(this.wall())
  }

  /** Milliseconds since boot; also comparable between two processes of one boot. */
  monotonic(): number {
    return this.base + this.steady()
  }

  /** Wall clock minus time since boot: constant within a boot but for steps and slewing. */
  get offset(): number {
    return this.difference - this.base
  }

  /** Differs from boot to boot. */
  get bootId(): string {
    if (this.boot === undefined) throw new Error('the clock has not been started')
    return this.boot
  }

  /** The time may be believed: a time server has answered in this boot, or, where nothing can tell, it is at least not before the build. */
  get synchronised(): boolean {
    return this.synced
  }

  /** A time server's word stands behind `synchronised`, not just plausibility. */
  get certain(): boolean {
    return existsSync(join(this.root, TIMESYNC_FOLDER))
  }

  /** Looks for a step and for the first synchronisation, and tells the bus. */
  look(): void {
    const difference = this.wall() - this.steady()
    const delta = Math.round(difference - this.difference)
    // Slewing must not add up to a step.
    this.difference = difference
    const was = this.synced
    this.synced = this.isSynchronised()
    if (Math.abs(delta) > STEP_MS) {
      this.log.warn({ delta_ms: delta, synchronised: this.synced }, 'the clock was stepped')
      this.bus.emit('clock-stepped', { delta_ms: delta, synchronised: this.synced })
    }
    if (this.synced && !was) {
      this.log.info({ certain: this.certain }, 'the clock is synchronised')
      this.bus.emit('clock-synchronised')
    }
  }

  private isSynchronised(): boolean {
    if (this.certain) return existsSync(join(this.root, TIMESYNC_FOLDER, 'synchronized'))
    return this.wall() >= this.builtAt
  }

  private read(path: string): string | undefined {
    try {
      return readFileSync(join(this.root, path), 'utf8').trim()
    } catch {
      return undefined
    }
  }
}
