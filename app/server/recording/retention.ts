/**
 * Makes room: recordings that are too old go, and the oldest go when the medium fills up. Only finished ones without a tag, and each is told.
 * Age counts only while the clock may be believed, lest a wrong date deletes everything.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { backoff } from '../backoff.ts'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { errorText } from '../errors.ts'
import type { DeviceStorage } from '../files/index.ts'
import type { Logger } from '../log.ts'
import type { Clock, DiskSpace } from '../platform/index.ts'
import type { Store } from '../store/index.ts'
import { inTurns } from '../turns.ts'
import type { Catalogue } from './catalogue.ts'
import { ClockTrust } from './clock-trust.ts'
import type { CopyPlace } from './places.ts'
import type { Removal } from './removal.ts'
import { chooseForAge, chooseForSpace, freeBytesWanted, isDeletable, MAX_LOOK } from './retention-choice.ts'
import type { RecordingRow } from './row.ts'

const TICK_MS = 1000
const AGE_INTERVAL_MS = 600_000
/** Recordings that one tick deletes at most. */
const MAX_PER_TICK = 50
/** Somebody waits for `makeRoom`. */
const MAKE_ROOM_MS = 15_000
/** A file that is still being read gives its space back later; until then it counts as given back. */
const OWED_MS = 30_000
const GIVEN_BACK_MS = 500
/** What could not be deleted is tried again after that, then ever less often. */
const FIRST_RETRY_MS = 5000
const LAST_RETRY_MS = 600_000
const ALERT_INTERVAL_MS = 60_000
const MEASURE_EVERY_MS = 5000
/** So much of the quota is kept free, for what is recorded between two measurements. */
const QUOTA_SHARE = 20

export interface RetentionPolicy {
  /** 0: never by age. */
  readonly retention_days: number
  /** 0: never by space. */
  readonly retention_min_free_bytes: number
  /** What files may take together; 0: no limit. */
  readonly quota_bytes: number
}

type Cause = 'age' | 'space' | 'quota'

export class Retention implements Component {
  private timer: NodeJS.Timeout | undefined
  private stopping = false
  private work: Promise<unknown> = Promise.resolve()
  private ageDue = Number.NEGATIVE_INFINITY
  private owed = { bytes: 0, until: 0 }
  /** Could not be deleted, and until when (monotonic) the others go on without them. */
  private readonly stuck = new Map<number, { readonly failures: number; readonly until: number }>()
  private exhausted = false
  /** Bytes that the quota is about; undefined: not measured, as there is none. */
  private used: number | undefined
  private measureDue = Number.NEGATIVE_INFINITY
  private told = { at: Number.NEGATIVE_INFINITY, deleted: 0, bytes: 0 }
  private trust: ClockTrust | undefined
  private readonly onSync = () => {
    this.ageDue = Number.NEGATIVE_INFINITY
  }

  constructor(
    private readonly store: Store,
    private readonly catalogue: Catalogue,
    private readonly removal: Removal,
    private readonly storage: DeviceStorage,
    private readonly clock: Clock,
    private readonly bus: Bus,
    private readonly log: Logger,
    private readonly policy: () => RetentionPolicy,
    /** Bytes of all files that the quota is about. */
    private readonly measureUsed: () => Promise<number>,
    /** Where a recording is still to be copied to. */
    private readonly waitingFor: (id: number) => readonly CopyPlace[] = () => [],
  ) {
    catalogue.onRemove((id) => void this.stuck.delete(id))
  }

  start(): void {
    this.trust = new ClockTrust(this.store, this.clock)
    this.bus.on('clock-synchronised', this.onSync)
    this.look()
  }

  async stop(): Promise<void> {
    this.stopping = true
    clearTimeout(this.timer)
    this.bus.off('clock-synchronised', this.onSync)
    await this.work
  }

  /**
   * Deletes the oldest untagged recordings until that much more is free on the medium of the recordings. False, and nothing deleted, when
   * even that would not do, or when nothing may be deleted for the space.
   */
  makeRoom(bytes: number): Promise<boolean> {
    const space = this.space()
    if (!space) return Promise.resolve(false)
    return this.inTurn(async () => {
      const { retention_min_free_bytes, quota_bytes } = this.policy()
      return (retention_min_free_bytes > 0 || quota_bytes > 0) && this.free(space.available + bytes, true)
    })
  }

  /** Of the recordings' medium, within the quota: a quota is a smaller disk. Null when the medium is not there. */
  space(): DiskSpace | null {
    const space = this.storage.space(this.storage.recordings)
    const { quota_bytes } = this.policy()
    if (!space || quota_bytes === 0 || this.used === undefined || !this.isOnQuota(this.storage.recordings)) return space
    const available = Math.min(space.available, Math.max(0, quota_bytes - this.used))
    return { total: Math.min(space.total, quota_bytes), used: space.used, available }
  }

  private isOnQuota(path: string): boolean {
    return this.storage.volumeOf(path) === this.storage.volumeOf(this.storage.devicePath())
  }

  private look(): void {
    void this.inTurn(() => this.tick()).finally(() => {
      if (!this.stopping) this.timer = setTimeout(() => this.look(), TICK_MS)
    })
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.work.then(work)
    this.work = turn.catch(() => undefined)
    return turn
  }

  /** Never throws; what fails keeps nothing else from being done. */
  private async tick(): Promise<void> {
    for (const work of [() => this.lookAtAge(), () => this.measure(), () => this.lookAtSpace()]) {
      await work().catch((error) => this.log.error({ error: errorText(error) }, 'retention failed; trying again'))
    }
  }

  private async lookAtAge(): Promise<void> {
    const { retention_days } = this.policy()
    const steady = this.clock.monotonic()
    if (retention_days === 0 || steady < this.ageDue) return
    const more = await this.byAge(retention_days)
    if (!more) this.ageDue = steady + AGE_INTERVAL_MS
  }

  private async lookAtSpace(): Promise<void> {
    const { retention_min_free_bytes, quota_bytes } = this.policy()
    const space = this.space()
    if (!space) return
    const wanted = Math.max(freeBytesWanted(retention_min_free_bytes, space.total), Math.floor(quota_bytes / QUOTA_SHARE))
    if (wanted > 0) await this.free(Math.min(wanted, Math.floor(space.total / 10)), false)
  }

  /** Walking through all files may take its time: so does the next measurement. */
  private async measure(): Promise<void> {
    const began = this.clock.monotonic()
    if (this.policy().quota_bytes === 0 || began < this.measureDue) return
    try {
      this.used = await this.measureUsed()
    } finally {
      const now = this.clock.monotonic()
      this.measureDue = now + Math.max(MEASURE_EVERY_MS, (now - began) * 20)
    }
  }

  /** True: there is more to do. */
  private async byAge(days: number): Promise<boolean> {
    if (!this.trust?.believes()) return false
    const present = new Map<string, boolean>()
    const isPresent = ({ path }: RecordingRow) => {
      const volume = this.storage.volumeOf(path)
      const known = present.get(volume) ?? this.storage.space(path) !== null
      present.set(volume, known)
      return known
    }
    const now = this.clock.now().getTime()
    const rows = await chooseForAge(this.candidates(isPresent), now, days, MAX_PER_TICK)
    for (const row of rows) await this.delete(row, 'age')
    return rows.length === MAX_PER_TICK
  }

  /** For somebody who waits (`insist`): all of it, or nothing is deleted. Otherwise what one tick may do. */
  private async free(wanted: number, insist: boolean): Promise<boolean> {
    const volume = this.storage.volumeOf(this.storage.recordings)
    const deadline = performance.now() + MAKE_ROOM_MS
    for (let first = true; !this.stopping && performance.now() < deadline; first = false) {
      const space = this.space()
      if (!space || (insist && wanted > space.total)) return false
      const missing = wanted - space.available - (insist ? 0 : this.owedBytes())
      if (missing <= 0) {
        this.exhausted = false
        return true
      }
      const candidates = this.candidates(({ path }) => this.storage.volumeOf(path) === volume)
      const rows = await chooseForSpace(candidates, missing, (id) => this.waitingFor(id).length > 0)
      if (this.stopping) return false
      const enough = rows.length === MAX_LOOK || rows.reduce((sum, { size }) => sum + size, 0) >= missing
      if (rows.length === 0 || (insist && first && !enough)) return this.nothingLeft(space.available, wanted)
      const cause = space.available < (this.storage.space(volume)?.available ?? 0) ? 'quota' : 'space'
      for (const row of rows.slice(0, MAX_PER_TICK)) await this.delete(row, cause)
      if (!insist) return true
      await this.appears(wanted)
    }
    return false
  }

  /** Some file systems give space back a moment after the file has gone. */
  private async appears(wanted: number): Promise<void> {
    const until = performance.now() + GIVEN_BACK_MS
    while (performance.now() < until && (this.space()?.available ?? 0) < wanted) await delay(20)
  }

  /** Many may lie on another medium: whoever else has something to do has his turn meanwhile. */
  private async *candidates(fits: (row: RecordingRow) => boolean): AsyncGenerator<RecordingRow> {
    for await (const row of inTurns(this.catalogue.oldestUntagged())) {
      if (this.stopping) return
      if (!this.isStuck(row.id) && fits(row)) yield row
    }
  }

  private isStuck(id: number): boolean {
    return this.clock.monotonic() < (this.stuck.get(id)?.until ?? Number.NEGATIVE_INFINITY)
  }

  private async delete({ id }: RecordingRow, cause: Cause): Promise<void> {
    // A tag may have come since it was chosen, or somebody else deleted it.
    const row = this.catalogue.get(id)
    if (!row || !isDeletable(row) || this.stopping) return
    const before = this.storage.space(row.path)?.available ?? 0
    const uncopied = this.waitingFor(id)
    const told = uncopied.length > 0 ? { cause, not_copied_to: uncopied } : { cause }
    try {
      await this.removal.remove(id, { reason: 'retention', ...told })
    } catch (error) {
      const failures = (this.stuck.get(id)?.failures ?? 0) + 1
      const retry_ms = backoff(failures, FIRST_RETRY_MS, LAST_RETRY_MS)
      this.log.error({ id, path: row.path, error: errorText(error), retry_ms }, 'retention cannot delete a recording')
      if (this.catalogue.get(id)) this.stuck.set(id, { failures, until: this.clock.monotonic() + retry_ms })
      return
    }
    const { filename, size, timestamp_start } = row
    if (this.used !== undefined && this.isOnQuota(row.path)) this.used = Math.max(0, this.used - size)
    this.log.warn({ id, filename, size, timestamp_start, ...told }, 'retention deleted a recording')
    if (cause === 'age') return
    const freed = (this.storage.space(row.path)?.available ?? 0) - before
    // Less by a little is what was recorded meanwhile.
    if (freed < size / 2) this.owe(size)
    this.tell(row, cause)
  }

  private owe(size: number): void {
    const bytes = this.owedBytes()
    this.owed = { bytes: bytes + size, until: bytes > 0 ? this.owed.until : this.clock.monotonic() + OWED_MS }
  }

  private owedBytes(): number {
    return this.clock.monotonic() < this.owed.until ? this.owed.bytes : 0
  }

  /** One alert a minute, with what has gone since the last one. */
  private tell({ size, path }: RecordingRow, cause: Cause): void {
    this.told.deleted++
    this.told.bytes += size
    const now = this.clock.monotonic()
    if (now - this.told.at < ALERT_INTERVAL_MS) return
    const available = this.storage.space(path)?.available ?? null
    this.bus.publish('alert', 'retention_space', { cause, deleted: this.told.deleted, bytes: this.told.bytes, available })
    this.told = { at: now, deleted: 0, bytes: 0 }
  }

  private nothingLeft(available: number, wanted: number): false {
    if (!this.exhausted) {
      this.log.error({ available, wanted }, 'nothing is left that retention may delete')
      this.bus.publish('alert', 'retention_exhausted', { available, wanted })
    }
    this.exhausted = true
    return false
  }
}
