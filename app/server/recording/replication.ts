/**
 * Copies of finished recordings on a second medium and on a network file system. What waits is kept in the database. Each place gets one file at
 * a time, whatever the other does: a network file system may hang. One that cannot take it now is tried again, ever less often, until it can.
 */
import { rm, stat } from 'node:fs/promises'
import { backoff } from '../backoff.ts'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { errorText } from '../errors.ts'
import type { DeviceStorage } from '../files/index.ts'
import type { Logger } from '../log.ts'
import type { Store } from '../store/index.ts'
import { Told } from '../told.ts'
import type { Catalogue } from './catalogue.ts'
import { Copies, type CopyRecord } from './copies.ts'
import { OriginalDamaged, type Pace } from './copy.ts'
import { copyRecording } from './copy-recording.ts'
import { COPY_PLACES, type CopyPlace, type Places } from './places.ts'
import { enterHash } from './rejudge.ts'
import { type RecordingRow, VIDEO_TYPES } from './row.ts'

const LOOK_MS = 1000
const FIRST_RETRY_MS = 5000
const LAST_RETRY_MS = 300_000
const PROGRESS_MS = 1000
const ALERT_INTERVAL_MS = 3_600_000
/** So many of the newest are looked through for what a crash or a full disk has left out of the queue. */
const SCAN_ROWS = 1000

export interface PlaceStatus {
  readonly place: CopyPlace
  readonly path: string | null
  readonly present: boolean
  readonly queued: number
  readonly copied: number
  readonly last_error: string | null
  readonly last_error_at: string | null
  /** The last error was that nothing more fits. */
  readonly full: boolean
  /** Null: nothing is being waited for. */
  readonly retry_in_ms: number | null
}

export interface CopyProgress {
  readonly recording_id: number
  readonly camera: number
  readonly place: CopyPlace
  readonly filename: string
  readonly copied_bytes: number
  readonly total_bytes: number
}

interface PlaceState {
  timer: NodeJS.Timeout | undefined
  work: Promise<void>
  current: { readonly progress: CopyProgress; readonly toldAt: number } | null
  present: boolean
  failures: number
  /** The others have their turn before what failed is tried again. */
  after: number
  retryAt: number
  error: { readonly message: string; readonly at: string; readonly full: boolean } | null
  alertedAt: number
}

export interface ReplicationOptions {
  /** Bytes per second. */
  readonly rate: () => number
  readonly now: () => Date
  readonly firstRetryMs?: number
}

export class Replication implements Component {
  private copies: Copies | undefined
  private readonly controller = new AbortController()
  private readonly states = new Map<CopyPlace, PlaceState>()
  /** What has not been entered into the queues lies among the newest. */
  private missed = true
  private readonly told = new Told()
  private readonly onFinished = (row: RecordingRow) => this.finished(row)

  constructor(
    private readonly store: Store,
    private readonly catalogue: Catalogue,
    private readonly storage: DeviceStorage,
    private readonly places: Places,
    private readonly bus: Bus,
    private readonly log: Logger,
    private readonly options: ReplicationOptions,
  ) {
    for (const place of COPY_PLACES) {
      this.states.set(place, {
        timer: undefined,
        work: Promise.resolve(),
        current: null,
        present: false,
        failures: 0,
        after: 0,
        retryAt: 0,
        error: null,
        alertedAt: Number.NEGATIVE_INFINITY,
      })
    }
  }

  start(): void {
    const copies = new Copies(this.store, this.catalogue)
    this.copies = copies
    this.bus.on('recording-finished', this.onFinished)
    for (const place of COPY_PLACES) this.look(place)
  }

  async stop(): Promise<void> {
    this.bus.off('recording-finished', this.onFinished)
    this.controller.abort()
    for (const { timer } of this.states.values()) clearTimeout(timer)
    await Promise.all([...this.states.values()].map(({ work }) => work))
  }

  /** Entries have become whole without being told of. */
  rescan(): void {
    this.missed = true
  }

  status(): { places: PlaceStatus[]; current: CopyProgress | null } {
    const current = [...this.states.values()].find((state) => state.current !== null)?.current ?? null
    return { places: COPY_PLACES.map((place) => this.statusOf(place)), current: current?.progress ?? null }
  }

  /** Where the copies of a recording lie. */
  copyOf(place: CopyPlace, id: number): CopyRecord | undefined {
    return this.copies?.get(place, id)
  }

  /** Places that are set, and have been there, but have not got this recording yet. */
  waitingFor(id: number): CopyPlace[] {
    return COPY_PLACES.filter((place) => this.places.copyPlace(place) !== undefined && this.copies?.waits(place, id) === true)
  }

  private statusOf(place: CopyPlace): PlaceStatus {
    const { present, error, retryAt } = this.state(place)
    const path = this.places.copyPlace(place) ?? null
    const { queued = 0, copied = 0 } = this.copies?.counts(place) ?? {}
    const wait = Math.max(0, Math.round(retryAt - performance.now()))
    return {
      place,
      path,
      present: path !== null && present,
      queued,
      copied,
      last_error: error?.message ?? null,
      last_error_at: error?.at ?? null,
      full: error?.full ?? false,
      retry_in_ms: queued > 0 && wait > 0 ? wait : null,
    }
  }

  private state(place: CopyPlace): PlaceState {
    return this.states.get(place) as PlaceState
  }

  /** Called from the end of a recording, which must not fail with it. */
  private finished(row: RecordingRow): void {
    try {
      this.enqueue(row)
    } catch (error) {
      this.missed = true
      this.say('queue', error)
    }
  }

  private enqueue(row: RecordingRow): void {
    if (row.state !== 'ready' || !VIDEO_TYPES.includes(row.media_type)) return
    for (const place of COPY_PLACES) {
      const path = this.places.copyPlace(place)
      // A place that has never been there gets everything when it is first seen.
      if (path !== undefined && this.copies?.isKnown(place, path)) this.copies.enqueue(place, path, [row.id])
    }
  }

  private look(place: CopyPlace): void {
    const state = this.state(place)
    state.work = this.pass(place, state)
      .then(() => this.told.over(place))
      .catch((error) => this.say(place, error))
      .then(() => {
        if (!this.controller.signal.aborted) state.timer = setTimeout(() => this.look(place), LOOK_MS)
      })
  }

  /** Once for as long as it is the same. */
  private say(where: CopyPlace | 'queue', error: unknown): void {
    const text = errorText(error)
    if (this.told.isNew(where, text)) this.log.error({ where, error: text }, 'replication failed; trying again')
  }

  private async pass(place: CopyPlace, state: PlaceState): Promise<void> {
    if (this.missed) this.scan()
    const path = this.places.copyPlace(place)
    if (path === undefined) return
    const present = await this.storage.reachable(path)
    // It is back: why it failed before means nothing any more.
    if (present && !state.present) Object.assign(state, { failures: 0, retryAt: 0, after: 0 })
    state.present = present
    if (!present) return
    await this.copies?.meet(place, path, this.controller.signal)
    for (const id of this.copies?.waiting(place, state.after) ?? []) {
      if (this.controller.signal.aborted || performance.now() < state.retryAt) break
      if (this.places.copyPlace(place) !== path) break
      // A copy that cannot be entered would be made again and again.
      if (this.store.isFull) break
      await this.attempt(place, path, id)
    }
    if (performance.now() >= state.retryAt) state.after = 0
  }

  private scan(): void {
    for (const row of this.catalogue.downFrom(this.catalogue.newestId(), SCAN_ROWS)) this.enqueue(row)
    this.missed = false
    this.told.over('queue')
  }

  private async attempt(place: CopyPlace, path: string, id: number): Promise<void> {
    const row = this.catalogue.get(id)
    // Its end is not entered yet: the database is full.
    if (row?.state === 'recording') return
    if (row?.state !== 'ready') {
      this.drop(place, id)
      return
    }
    const state = this.state(place)
    try {
      await this.copy(place, path, row)
      Object.assign(state, { failures: 0, retryAt: 0, error: null })
    } catch (error) {
      if (this.controller.signal.aborted) return
      await this.failed(place, row, error as NodeJS.ErrnoException)
    } finally {
      state.current = null
    }
  }

  private async failed(place: CopyPlace, row: RecordingRow, error: NodeJS.ErrnoException): Promise<void> {
    // Waiting makes no original whole; it is for `storage/verify` to report, and must not hold up the others.
    const hopeless = error instanceof OriginalDamaged || (error.code === 'ENOENT' && (await this.sourceGone(row)))
    const state = this.state(place)
    const message = errorText(error)
    state.error = { message, at: this.options.now().toISOString(), full: error.code === 'ENOSPC' }
    const pause = backoff(state.failures + 1, this.options.firstRetryMs ?? FIRST_RETRY_MS, LAST_RETRY_MS)
    const retry_ms = hopeless && this.drop(place, row.id) ? null : pause
    if (retry_ms !== null)
      Object.assign(state, { failures: state.failures + 1, after: row.id, retryAt: performance.now() + retry_ms })
    this.log.error({ id: row.id, place, error: message, retry_ms }, 'a recording cannot be copied')
    this.tell('replication_failed', row, { place, error: message, retry_ms })
    if (error.code !== 'ENOSPC' || performance.now() - state.alertedAt < ALERT_INTERVAL_MS) return
    state.alertedAt = performance.now()
    this.bus.publish('alert', 'replication_full', { place, path: this.places.copyPlace(place) ?? null })
  }

  /** False: the database takes nothing now. */
  private drop(place: CopyPlace, id: number): boolean {
    try {
      this.copies?.drop(place, id)
      return true
    } catch (error) {
      this.log.error({ id, place, error: errorText(error) }, 'a recording stays queued to be copied')
      return false
    }
  }

  private async sourceGone(row: RecordingRow): Promise<boolean> {
    if (!this.catalogue.get(row.id)) return true
    for (const { path } of row.parts) {
      const there = await stat(this.storage.hostPath(path)).catch(() => null)
      if (!there) return this.storage.isPresent(path)
    }
    return false
  }

  private async copy(place: CopyPlace, path: string, row: RecordingRow): Promise<void> {
    const hashed = (part: string, sha256: string) => enterHash(this.catalogue, row.id, part, sha256)
    const parts = await copyRecording(this.storage, path, row, this.pace(place, row), hashed)
    if (!this.copies?.done(place, path, row, parts)) {
      // Deleted while it was copied: no entry would tell of these files.
      for (const copy of parts) {
        if (!this.catalogue.byPath(copy.path)) await rm(this.storage.hostPath(copy.path), { force: true })
      }
      return
    }
    this.log.info({ id: row.id, place, bytes: row.size }, 'recording copied')
    this.tell('replicated', row, { place, copy: parts[0]?.path, size: row.size })
  }

  private pace(place: CopyPlace, row: RecordingRow): Pace {
    const state = this.state(place)
    const onBytes = (bytes: number) => {
      const before = state.current?.progress
      const copied_bytes = Math.min(row.size, (before?.recording_id === row.id ? before.copied_bytes : 0) + bytes / 2)
      const progress = {
        recording_id: row.id,
        camera: row.camera,
        place,
        filename: row.filename,
        copied_bytes,
        total_bytes: row.size,
      }
      const toldAt = state.current?.toldAt ?? performance.now()
      const due = performance.now() - toldAt >= PROGRESS_MS
      state.current = { progress, toldAt: due ? performance.now() : toldAt }
      if (due) this.tell('replicating', row, { place, fraction: row.size > 0 ? copied_bytes / row.size : 0 })
    }
    return { signal: this.controller.signal, rate: () => this.options.rate() / this.underWay, onBytes }
  }

  /** Copies that share the rate. */
  private get underWay(): number {
    return Math.max(1, [...this.states.values()].filter(({ current }) => current !== null).length)
  }

  private tell(type: string, { id, camera, filename }: RecordingRow, more: Record<string, unknown>): void {
    this.bus.publish('recording', type, { id, camera, filename, ...more })
  }
}
