/**
 * Checksums: each file of a finished recording is hashed in the background, one at a time. And recordings that ended because their medium was
 * pulled out are judged again when it is back.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { errorText } from '../errors.ts'
import type { DeviceStorage } from '../files/index.ts'
import type { Logger } from '../log.ts'
import type { Catalogue } from './catalogue.ts'
import { hashFile } from './copy.ts'
import { enterHash, rejudge } from './rejudge.ts'
import type { RecordingRow } from './row.ts'

/** What a crash may have left without checksums lies among the newest. */
const SCAN_ROWS = 1000
const MEDIUM_CHECK_MS = 2000
const RETRY_MS = 2000

export class Integrity implements Component {
  private readonly queue = new Set<number>()
  private readonly lost = new Set<number>()
  private readonly controller = new AbortController()
  private timer: NodeJS.Timeout | undefined
  private work: Promise<void> = Promise.resolve()
  private judging: Promise<void> = Promise.resolve()
  private working = false
  private readonly onFinished = (row: RecordingRow) => this.finished(row)

  constructor(
    private readonly catalogue: Catalogue,
    private readonly storage: DeviceStorage,
    private readonly bus: Bus,
    private readonly log: Logger,
    /** Bytes per second. */
    private readonly rate: () => number,
  ) {}

  start(): void {
    this.bus.on('recording-finished', this.onFinished)
    for (const row of this.catalogue.downFrom(this.catalogue.newestId(), SCAN_ROWS).reverse()) this.finished(row)
    this.timer = setInterval(() => {
      this.judging = this.judging
        .then(() => this.judgeReturned())
        .catch((error) => this.log.error({ error: errorText(error) }, 'what has returned cannot be judged; trying again'))
    }, MEDIUM_CHECK_MS)
  }

  async stop(): Promise<void> {
    this.bus.off('recording-finished', this.onFinished)
    clearInterval(this.timer)
    this.controller.abort()
    await Promise.all([this.work, this.judging])
  }

  /** Resolves when nothing is waiting to be hashed. */
  async settled(): Promise<void> {
    await this.work
  }

  private finished(row: RecordingRow): void {
    if (row.state === 'defect' && row.duration === 0) this.lost.add(row.id)
    if (row.state !== 'ready' || row.parts.every(({ sha256 }) => sha256 !== null)) return
    this.queue.add(row.id)
    if (this.working) return
    this.working = true
    this.work = this.workOff().finally(() => {
      this.working = false
    })
  }

  private async workOff(): Promise<void> {
    for (const id of this.queue) {
      if (this.controller.signal.aborted) return
      this.queue.delete(id)
      await this.hash(id).catch(async (error) => {
        if (this.controller.signal.aborted) return
        this.log.error({ id, error: errorText(error) }, 'a recording cannot be hashed')
        await delay(RETRY_MS, undefined, { signal: this.controller.signal }).catch(() => undefined)
      })
    }
  }

  private async hash(id: number): Promise<void> {
    const pace = { signal: this.controller.signal, rate: this.rate }
    for (const { path, sha256 } of this.catalogue.get(id)?.parts ?? []) {
      if (sha256 !== null) continue
      const hashed = await hashFile(this.storage.hostPath(path), pace)
      enterHash(this.catalogue, id, path, hashed.sha256)
    }
  }

  private async judgeReturned(): Promise<void> {
    for (const id of this.lost) {
      if (this.controller.signal.aborted) return
      const row = this.catalogue.get(id)
      if (row?.state !== 'defect') this.lost.delete(id)
      else if (this.storage.isPresent(row.path)) {
        this.lost.delete(id)
        const judged = await rejudge(row, this.catalogue, this.storage).catch((error) => {
          this.log.error({ id, error: errorText(error) }, 'a recording cannot be read back')
        })
        if (judged?.state !== 'ready') continue
        this.log.warn({ id, path: row.path }, 'a recording is there again')
        this.bus.publish('recording', 'recovered', {
          id,
          camera: row.camera,
          filename: row.filename,
          path: row.path,
          state: 'ready',
        })
        this.bus.emit('recording-finished', judged)
      }
    }
  }
}
