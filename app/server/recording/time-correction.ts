/**
 * Entries made before the clock was set carry a wrong time. Every step of the clock moves those of this boot along, and with the first
 * synchronisation they count as dated. Durations, ids and file names stay.
 *
 * What is to be done is written down first, together with the clock's offset, and worked off in batches, each with its progress in the same
 * transaction: a crash at any moment neither loses a step nor applies it twice to an entry.
 */
import { setImmediate as breathe } from 'node:timers/promises'
import { backoff } from '../backoff.ts'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { Clock } from '../platform/index.ts'
import type { Store, Table } from '../store/index.ts'
import type { Catalogue } from './catalogue.ts'
import type { RecordingRow } from './row.ts'

/** So few that they are written on a full disk too. */
const BATCH = 10
const FIRST_RETRY_MS = 1000
const LAST_RETRY_MS = 60_000
/** Two offsets of one boot that differ by less have been slewed. */
const STEP_MS = 2000

interface Task {
  /** What entries are moved by; null: they are marked as dated. */
  readonly delta: number | null
  /** Entries up to this id; later ones were made with the new time. */
  readonly next: number
  readonly corrected: number
}

interface Note {
  readonly boot_id: string
  /** Of the clock, with all that `tasks` holds. */
  readonly offset: number
  readonly synchronised: boolean
  readonly tasks: readonly Task[]
}

export class TimeCorrection implements Component {
  private notes: Table<string, Note> | undefined
  private work: Promise<void> = Promise.resolve()
  /** What could not be written down yet. */
  private unnoted: Task[] = []
  private failures = 0
  private retry: NodeJS.Timeout | undefined
  private stopping = false
  private readonly onStep = ({ delta_ms }: { delta_ms: number }) => this.plan([delta_ms])
  private readonly onSync = () => this.plan([null])

  constructor(
    private readonly store: Store,
    private readonly catalogue: Catalogue,
    private readonly clock: Clock,
    private readonly bus: Bus,
    private readonly log: Logger,
    private readonly firstRetryMs = FIRST_RETRY_MS,
  ) {}

  start(): void {
    this.notes = this.store.table('time_correction')
    const found = this.note()
    const missed = Math.round(this.clock.offset - found.offset)
    const deltas: (number | null)[] = Math.abs(missed) > STEP_MS ? [missed] : []
    if (this.clock.synchronised && !found.synchronised) deltas.push(null)
    this.plan(deltas)
    this.bus.on('clock-stepped', this.onStep).on('clock-synchronised', this.onSync)
  }

  async stop(): Promise<void> {
    this.stopping = true
    clearTimeout(this.retry)
    this.bus.off('clock-stepped', this.onStep).off('clock-synchronised', this.onSync)
    await this.work
  }

  /** Resolves when all that is known now has been corrected. */
  async settled(): Promise<void> {
    await this.work
  }

  private note(): Note {
    const note = this.notes?.get('note')
    if (note?.boot_id === this.clock.bootId) return note
    return { boot_id: this.clock.bootId, offset: this.clock.offset, synchronised: false, tasks: [] }
  }

  private plan(deltas: readonly (number | null)[]): void {
    try {
      const next = this.catalogue.newestId()
      this.unnoted.push(...deltas.map((delta): Task => ({ delta, next, corrected: 0 })))
      this.writeDown()
    } catch (error) {
      // Should the server end before, the next start finds that the offset has changed.
      this.log.error({ error: errorText(error) }, 'a step of the clock cannot be noted yet')
    }
    this.goOn()
  }

  private writeDown(): void {
    const note = this.note()
    const synchronised = note.synchronised || this.unnoted.some(({ delta }) => delta === null)
    this.write({ ...note, offset: this.clock.offset, synchronised, tasks: [...note.tasks, ...this.unnoted] })
    this.unnoted = []
  }

  private goOn(): void {
    this.work = this.work
      .then(() => this.workOff())
      .then(
        () => {
          this.failures = 0
        },
        (error) => this.tryLater(error),
      )
  }

  /** What is left stands in the note. */
  private tryLater(error: unknown): void {
    if (this.stopping) return
    this.failures++
    const retry_ms = backoff(this.failures, this.firstRetryMs, LAST_RETRY_MS)
    this.log.error({ error: errorText(error), retry_ms }, 'times cannot be corrected yet')
    clearTimeout(this.retry)
    this.retry = setTimeout(() => this.goOn(), retry_ms)
  }

  private async workOff(): Promise<void> {
    if (this.unnoted.length > 0 && !this.stopping) this.writeDown()
    for (let [task] = this.note().tasks; task && !this.stopping; [task] = this.note().tasks) {
      const done = this.store.urgent(() => this.batch(task as Task))
      if (done && task.delta !== null && done.corrected > 0) {
        this.log.warn({ delta_ms: task.delta, recordings: done.corrected }, 'times corrected')
        this.bus.publish('recording', 'time_corrected', { delta_ms: task.delta, recordings: done.corrected })
      }
      await breathe()
    }
  }

  /** Returns the task when it is done. */
  private batch(task: Task): Task | undefined {
    const { delta, next } = task
    const rows = this.catalogue.downFrom(next, BATCH)
    let corrected = task.corrected
    const end = rows.findIndex((row) => row.boot_id !== '' && row.boot_id !== this.clock.bootId)
    for (const row of end === -1 ? rows : rows.slice(0, end)) {
      if (row.time_synced || row.boot_id === '') continue
      this.catalogue.update(row.id, delta === null ? { time_synced: true } : moved(row, delta))
      corrected++
    }
    const note = this.note()
    const last = rows.at(-1)
    const after = { ...task, next: (last?.id ?? 0) - 1, corrected }
    const ended = end !== -1 || rows.length < BATCH
    this.write({ ...note, tasks: [...(ended ? [] : [after]), ...note.tasks.slice(1)] })
    return ended ? after : undefined
  }

  private write(note: Note): void {
    this.store.urgent(() => this.notes?.put('note', note))
  }
}

function moved({ timestamp_start, timestamp_end }: RecordingRow, delta: number): Partial<RecordingRow> {
  return { timestamp_start: timestamp_start + delta, timestamp_end: timestamp_end + delta }
}
