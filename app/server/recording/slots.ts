/** One slot a camera: what it records now, what it is to take up again, and the state that the specification's table allows. */
import type { Actor } from '../actor.ts'
import type { CameraSettings } from '../cameras/index.ts'
import type { RecorderEnded } from '../media/index.ts'
import { nextRecordingState, type RecordingState, type RecordingTrigger } from './machine.ts'
import { partName } from './parts.ts'
import type { RecordingPlan } from './plan.ts'
import type { RecordingRow } from './row.ts'
import { Stopwatch } from './stopwatch.ts'

export type EndReason = RecorderEnded['reason'] | 'helper_lost' | 'storage_lost'

/** Who wanted a recording. */
export interface Origin {
  readonly trigger: RecordingRow['trigger']
  readonly createdBy: string | null
}

/** What is to be taken up again after the helper died. Times are of `performance.now()`. */
export interface Resume {
  /** With the duration that was left then. */
  readonly plan: RecordingPlan
  readonly origin: Origin
  /** What was recorded until then. */
  readonly row: RecordingRow
  /** Of its camera at that time. */
  readonly settings: CameraSettings
  /** Settled when what was recorded until then has been judged and told. */
  readonly finished: Promise<unknown>
  /** How often in a row the helper died soon. */
  readonly deaths: number
  readonly since: number
  readonly notBefore: number
  /** Why it has not been taken up yet. */
  code: string
  /** What the last attempt failed with. */
  error: string
}

export class Active {
  readonly watch = new Stopwatch()
  /** Clock of `performance.now()`. */
  readonly startedAt = performance.now()
  readonly finished: Promise<RecordingRow>
  finish: (row: RecordingRow) => void = () => {}
  /** Milliseconds of the past that are in front of it. */
  pastMs = 0
  /** Of the part that is being written, from 1. */
  part = 1
  /** Why we asked the helper to stop, when it was not the user. */
  stopReason?: EndReason
  /** It is to end, and is not taken up again when the helper dies over that. */
  stopping = false
  /** Who stopped it, when somebody did. */
  stoppedBy?: Actor
  ending = false
  /** How often in a row the helper has died soon over what this one takes up. */
  deaths = 0

  constructor(
    public row: RecordingRow,
    readonly plan: RecordingPlan,
    readonly origin: Origin,
    /** Of the first part. */
    readonly hostPath: string,
  ) {
    this.finished = new Promise((resolve) => {
      this.finish = resolve
    })
  }

  /** Milliseconds that are left of the wanted duration, which counts from the start on; 0 where none was wanted. */
  get remainingMs(): number {
    return this.plan.durationMs === 0 ? 0 : Math.round(this.plan.durationMs + this.pastMs - this.watch.ms)
  }

  /** Name of the part that is being written. */
  get filename(): string {
    return partName(this.row.filename, this.part)
  }
}

export interface Slot {
  readonly camera: number
  state: RecordingState
  active: Active | null
  /** Until the deadline, or until the user resumes it. */
  resume: Resume | null
  lastEnd: { readonly reason: EndReason; readonly timestamp: string } | null
  /** A start has its turn, and has neither failed nor begun. */
  starting: boolean
  /** Starts and stops of one camera happen one after the other. */
  turn: Promise<unknown>
}

export class Slots {
  private readonly slots = new Map<number, Slot>()

  constructor(
    /** Told of each new state. */
    private readonly changed: (slot: Slot) => void,
  ) {}

  get(camera: number): Slot {
    let slot = this.slots.get(camera)
    if (!slot) {
      slot = { camera, state: 'stopped', active: null, resume: null, lastEnd: null, starting: false, turn: Promise.resolve() }
      this.slots.set(camera, slot)
    }
    return slot
  }

  all(): Slot[] {
    return [...this.slots.values()]
  }

  running(): Active[] {
    return this.all().flatMap(({ active }) => active ?? [])
  }

  byRecording(id: number): Active | undefined {
    return this.running().find(({ row }) => row.id === id)
  }

  inTurn<T>(camera: number, work: (slot: Slot) => Promise<T>): Promise<T> {
    const slot = this.get(camera)
    const turn = slot.turn.then(() => work(slot))
    slot.turn = turn.catch(() => undefined)
    return turn
  }

  move(slot: Slot, trigger: RecordingTrigger): void {
    slot.state = nextRecordingState(slot.state, trigger) ?? slot.state
    this.changed(slot)
  }
}
