/**
 * Recording control: one slot a camera with the specification's state machine. The helper writes the file; this component decides, keeps the
 * catalogue true, and turns every way in which a recording can end (stop, duration, full disk, dead helper) into the same finish.
 */
import { rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Actor, actingAs, currentActor } from '../actor.ts'
import type { Bus } from '../bus.ts'
import { type Cameras, helperToApi } from '../cameras/index.ts'
import type { Component } from '../component.ts'
import { ApiError, Conflict, errorText, NotFound } from '../errors.ts'
import { type DeviceStorage, dayFolder, freeName } from '../files/index.ts'
import type { Logger } from '../log.ts'
import { type CameraState, HelperError, type MediaSupervisor, type RecorderEnded } from '../media/index.ts'
import { ensureFolder, syncFolder } from '../platform/index.ts'
import type { Catalogue, ListQuery } from './catalogue.ts'
import { judgeFile, type Verdict } from './finish.ts'
import { nextRecordingState, type RecordingState, type RecordingTrigger } from './machine.ts'
import { planRecording, type RecordingDefaults, type RecordingPlan, type RecordingRequest } from './plan.ts'
import type { NewRow, RecordingPart, RecordingRow } from './row.ts'
import type { NewTag, Tag, Tags } from './tags.ts'

/** Free bytes that must remain beyond the estimate when a recording starts. */
const START_MARGIN = 1_000_000_000
/** A running recording ends while this much is left, so that the database can still commit. */
const SPACE_RESERVE = 48 * 1024 * 1024
const SPACE_CHECK_MS = 500
const RETRY_MS = 2000
/** A stop before that would leave a file without a single picture: the first key frame takes a moment. */
const SHORTEST_MS = 400
/** A camera that comes back later than this is not what the user was recording any more. */
const RESUME_WITHIN_MS = 60_000

export type EndReason = RecorderEnded['reason'] | 'helper_lost' | 'storage_lost'

interface Active {
  readonly row: RecordingRow
  readonly plan: RecordingPlan
  readonly hostPath: string
  /** Clock of `performance.now()`: a wall clock may jump. */
  readonly startedAt: number
  readonly finished: Promise<RecordingRow>
  readonly finish: (row: RecordingRow) => void
  /** Why we asked the helper to stop, when it was not the user. */
  stopReason?: EndReason
  /** Who stopped it, when somebody did. */
  stoppedBy?: Actor
  ending: boolean
}

interface Slot {
  state: RecordingState
  active: Active | null
  /** What to take up again once the camera is back, after the helper died; `row` is what was recorded until then. */
  resume: { readonly plan: RecordingPlan; readonly row: RecordingRow; readonly until: number } | null
  lastEnd: { reason: EndReason; timestamp: string } | null
  /** Starts and stops of one camera happen one after the other. */
  turn: Promise<unknown>
}

export interface RecordingStatus {
  readonly camera: number
  readonly state: RecordingState
  readonly row: RecordingRow | null
  readonly elapsedMs: number
  readonly estimatedBytes: number | null
  readonly remainingBytes: number | null
  readonly lastEnd: Slot['lastEnd']
}

export class Recorder implements Component {
  private readonly slots = new Map<number, Slot>()
  /** Paths of recordings that are about to begin, over all cameras. */
  private readonly claimed = new Set<string>()
  private spaceTimer: NodeJS.Timeout | undefined
  private readonly retries = new Set<NodeJS.Timeout>()
  private stopping = false
  private readonly onEnded = (event: RecorderEnded) => this.ended(event)
  private readonly onDown = () => this.helperLost()
  private readonly onCamera = (state: CameraState) => this.cameraState(state)

  constructor(
    private readonly cameras: Cameras,
    private readonly media: MediaSupervisor,
    private readonly catalogue: Catalogue,
    private readonly tags: Tags,
    private readonly storage: DeviceStorage,
    private readonly bus: Bus,
    private readonly log: Logger,
    /** What the user has set for recordings that do not say otherwise. */
    private readonly defaults: () => RecordingDefaults,
    private readonly now: () => Date = () => new Date(),
  ) {}

  /** What an earlier process left unfinished is judged before anything new begins. */
  async start(): Promise<void> {
    for (const row of this.catalogue.inState('recording')) {
      const verdict = await this.judge(row.id, this.storage.hostPath(row.path))
      this.enter(row, verdict)
      this.log.warn({ id: row.id, ...verdict }, 'interrupted recording recovered')
      this.publish('recovered', row, { state: verdict.state })
    }
    this.media.on('recorder.ended', this.onEnded).on('down', this.onDown).on('camera.state', this.onCamera)
  }

  /** Finishes every running recording. */
  async stop(): Promise<void> {
    this.stopping = true
    const running = [...this.slots].filter(([, slot]) => slot.active).map(([camera]) => camera)
    await Promise.allSettled(running.map((camera) => this.stopRecording(camera)))
    this.media.off('recorder.ended', this.onEnded).off('down', this.onDown).off('camera.state', this.onCamera)
    clearInterval(this.spaceTimer)
    for (const timer of this.retries) clearTimeout(timer)
  }

  /** Refused (and nothing changes) while recording, without a picture, or with too little space. */
  startRecording(request: RecordingRequest): Promise<{ row: RecordingRow; estimatedBytes: number }> {
    const camera = this.cameras.view(request.camera).id
    return this.inTurn(camera, async (slot) => {
      if (nextRecordingState(slot.state, 'start') === undefined) {
        this.log.warn({ camera, state: slot.state }, 'start refused: already recording')
        throw new ApiError('RECORDING_IN_PROGRESS', 'A recording is already running', `camera ${camera}`)
      }
      const plan = planRecording(request, this.cameras.view(camera), this.now(), this.defaults())
      this.checkSpace(plan)
      slot.resume = null
      return { row: await this.begin(slot, plan), estimatedBytes: plan.estimatedBytes }
    })
  }

  /** Resolves when the file is finalised and the catalogue says so. */
  stopRecording(camera: number = this.cameras.active): Promise<RecordingRow> {
    this.cameras.view(camera)
    return this.inTurn(camera, async (slot) => {
      const { active, resume } = slot
      slot.resume = null
      // Stopped between the helper's death and the camera's return: that recording has ended already.
      if (!active && resume) return this.catalogue.get(resume.row.id) ?? resume.row
      if (!active || nextRecordingState(slot.state, 'stop') === undefined)
        throw new Conflict('No recording is running', `camera ${camera}`)
      return this.end(active)
    })
  }

  isRecording(camera: number): boolean {
    return this.slots.get(camera)?.active != null
  }

  status(camera: number = this.cameras.active): RecordingStatus {
    this.cameras.view(camera)
    const { state, active, lastEnd } = this.slot(camera)
    return {
      camera,
      state,
      row: active?.row ?? null,
      elapsedMs: active ? performance.now() - active.startedAt : 0,
      estimatedBytes: active?.plan.estimatedBytes ?? null,
      remainingBytes: this.storage.space()?.available ?? null,
      lastEnd,
    }
  }

  list(query: ListQuery): { rows: RecordingRow[]; total: number } {
    return this.catalogue.list(query)
  }

  /** Marks the running recording; `timestamp` is the present moment unless given (milliseconds into the recording). */
  tag(camera: number | undefined, tag: Omit<NewTag, 'timestamp'> & { readonly timestamp?: number }): Tag {
    const { row, elapsedMs, camera: id } = this.status(camera)
    if (!row) throw new Conflict('No recording is running', `camera ${id}`)
    return this.tags.add(row, { ...tag, timestamp: tag.timestamp ?? Math.round(elapsedMs) })
  }

  row(id: number): RecordingRow {
    const row = this.catalogue.get(id)
    if (!row) throw new NotFound(`recording ${id}`)
    return row
  }

  /** Of a recording's first part, or of any of its parts. */
  hostPath({ path }: Pick<RecordingRow, 'path'>): string {
    return this.storage.hostPath(path)
  }

  /** Removes the files, then the row: a crash between the two leaves a row that can be deleted again. */
  async remove(id: number): Promise<void> {
    const row = this.row(id)
    if (row.state === 'recording')
      throw new ApiError('RECORDING_IN_PROGRESS', 'This recording is still running', `recording ${id}`)
    for (const part of row.parts) await rm(this.hostPath(part), { force: true })
    this.catalogue.remove(id)
    this.publish('deleted', row, {})
  }

  /** The recording that a file of the device storage belongs to. */
  ownerOf(devicePath: string): RecordingRow | undefined {
    return this.catalogue.byPath(devicePath)
  }

  running(): RecordingRow[] {
    return this.catalogue.inState('recording')
  }

  /** A file has been deleted: its part leaves the recording, and with the last part the recording leaves the catalogue. */
  forgetFile(devicePath: string): void {
    const row = this.catalogue.byPath(devicePath)
    if (!row) return
    if (row.state === 'recording')
      throw new ApiError('RECORDING_IN_PROGRESS', 'This recording is still running', `recording ${row.id}`)
    const parts = row.parts.filter((part) => part.path !== devicePath)
    const [first] = parts
    if (first) {
      const sum = (of: (part: RecordingPart) => number) => parts.reduce((total, part) => total + of(part), 0)
      const sums = { duration: sum((part) => part.duration), size: sum((part) => part.size) }
      this.catalogue.update(row.id, { parts, filename: first.filename, path: first.path, ...sums })
      return
    }
    this.catalogue.remove(row.id)
    this.publish('deleted', row, {})
  }

  private slot(camera: number): Slot {
    let slot = this.slots.get(camera)
    if (!slot) {
      slot = { state: 'stopped', active: null, resume: null, lastEnd: null, turn: Promise.resolve() }
      this.slots.set(camera, slot)
    }
    return slot
  }

  private inTurn<T>(camera: number, work: (slot: Slot) => Promise<T>): Promise<T> {
    const slot = this.slot(camera)
    const turn = slot.turn.then(() => work(slot))
    slot.turn = turn.catch(() => undefined)
    return turn
  }

  private checkSpace({ estimatedBytes }: RecordingPlan): void {
    const available = this.storage.space()?.available ?? 0
    const needed = estimatedBytes + START_MARGIN
    if (available > needed) return
    this.log.error({ available, needed }, 'start refused: too little free space')
    throw new ApiError(
      'INSUFFICIENT_STORAGE',
      'There is too little free space for this recording',
      `${needed} bytes needed, ${available} free`,
    )
  }

  /** Row first, then the file: whatever happens, no file is without a row. */
  private async begin(slot: Slot, plan: RecordingPlan): Promise<RecordingRow> {
    const start = this.now()
    const folder = this.storage.devicePath('recordings', dayFolder(start))
    const hostFolder = this.storage.hostPath(folder)
    ensureFolder(hostFolder)
    const filename = freeName(hostFolder, `${plan.stem}.mp4`, this.claimed)
    const hostPath = join(hostFolder, filename)
    this.claimed.add(hostPath)
    const row = this.catalogue.create(newRow(plan, start, filename, join(folder, filename)))
    const active = newActive(row, plan, hostPath)
    slot.active = active
    try {
      await this.media.call('recorder.start', {
        id: row.id,
        camera: plan.camera,
        path: hostPath,
        stream: 'stream1',
        ...(plan.encode ? { encode: plan.encode } : {}),
        duration_ms: plan.durationMs,
      })
    } catch (error) {
      slot.active = null
      this.catalogue.remove(row.id)
      const foreign = error instanceof HelperError && error.data.errno === 'EEXIST'
      if (!foreign) await rm(hostPath, { force: true })
      throw helperToApi(error, plan.camera)
    } finally {
      this.claimed.delete(hostPath)
    }
    if (!active.ending) this.transition(slot, plan.camera, 'start')
    this.spaceTimer ??= setInterval(() => this.watchSpace(), SPACE_CHECK_MS)
    this.log.info({ id: row.id, camera: plan.camera, filename }, 'recording started')
    this.publish('started', row, { estimated_size: plan.estimatedBytes })
    return row
  }

  /** Asks the helper to finalise and waits until the catalogue knows; a helper that is gone has been dealt with by `helperLost`. */
  private async end(active: Active): Promise<RecordingRow> {
    const actor = currentActor()
    if (actor) active.stoppedBy = actor
    await delay(Math.max(0, active.startedAt + SHORTEST_MS - performance.now()))
    await this.media.call('recorder.stop', { id: active.row.id }).catch((error) => {
      this.log.warn({ id: active.row.id, error: errorText(error) }, 'recorder did not stop by itself')
      return this.finishRecording(active, 'helper_lost')
    })
    return active.finished
  }

  private ended({ id, reason, message }: RecorderEnded): void {
    const active = [...this.slots.values()].map((slot) => slot.active).find((candidate) => candidate?.row.id === id)
    if (!active) return
    if (message) this.log.warn({ id, reason, message }, 'recorder ended')
    void this.finishRecording(active, active.stopReason ?? reason)
  }

  private helperLost(): void {
    for (const slot of this.slots.values()) {
      const { active } = slot
      // A start that is still under way fails by itself.
      if (!active || slot.state !== 'recording' || this.stopping) continue
      const { plan, row } = active
      const remaining = plan.durationMs === 0 ? 0 : Math.round(plan.durationMs - (performance.now() - active.startedAt))
      if (plan.durationMs === 0 || remaining >= 1000) {
        slot.resume = { plan: { ...plan, durationMs: remaining }, row, until: performance.now() + RESUME_WITHIN_MS }
      }
      void this.finishRecording(active, 'helper_lost')
    }
  }

  /** After a crash of the helper, what was being recorded goes on in a new file as soon as the camera delivers again. */
  private cameraState(state: CameraState): void {
    if (state.state !== 'streaming' || !this.slots.get(state.id)?.resume) return
    this.inTurn(state.id, async (slot) => {
      const { resume } = slot
      slot.resume = null
      if (!resume || slot.active || this.stopping || performance.now() > resume.until) return
      this.checkSpace({ ...resume.plan, estimatedBytes: 0 })
      const row = await this.begin(slot, resume.plan)
      this.publish('resumed', row, { after: resume.row.id })
    }).catch((error) => this.log.error({ camera: state.id, error: errorText(error) }, 'recording could not be taken up again'))
  }

  private watchSpace(): void {
    const running = [...this.slots.values()].flatMap((slot) => slot.active ?? [])
    if (running.length === 0) {
      clearInterval(this.spaceTimer)
      this.spaceTimer = undefined
      return
    }
    const space = this.storage.space()
    if (space && space.available >= SPACE_RESERVE) return
    const reason = space ? 'disk_full' : 'storage_lost'
    for (const active of running.filter(({ stopReason }) => stopReason === undefined)) {
      active.stopReason = reason
      this.log.error({ id: active.row.id, reason }, 'recording ends')
      void this.end(active)
    }
  }

  private async finishRecording(active: Active, reason: EndReason): Promise<void> {
    if (active.ending) return
    active.ending = true
    const slot = this.slot(active.plan.camera)
    slot.active = null
    slot.lastEnd = { reason, timestamp: this.now().toISOString() }
    this.transition(slot, active.plan.camera, 'ended')
    const verdict = await this.judge(active.row.id, active.hostPath)
    const row = this.enter(active.row, verdict)
    active.finish(row)
    this.log.info({ id: row.id, reason, ...verdict }, 'recording finished')
    const { state, durationMs: duration_ms, sizeBytes: size } = verdict
    const tell = () => this.publish('stopped', row, { reason, state, duration_ms, size })
    if (active.stoppedBy) actingAs(active.stoppedBy, tell)
    else tell()
    if (reason === 'disk_full' || reason === 'storage_lost') {
      const available = this.storage.space()?.available ?? null
      this.bus.publish('alert', reason === 'disk_full' ? 'storage_full' : 'storage_lost', { recording: row.id, available })
    }
  }

  /** Never throws: a file that cannot be read is a defect one, and one bad file must not stop the server. */
  private async judge(id: number, hostPath: string): Promise<Verdict> {
    try {
      const verdict = await judgeFile(hostPath)
      if (verdict.state === 'ready') syncFolder(dirname(hostPath))
      return verdict
    } catch (error) {
      this.log.error({ id, error: errorText(error) }, 'recording cannot be read back')
      return { state: 'defect', durationMs: 0, sizeBytes: 0 }
    }
  }

  /** Writes the verdict; on a full disk the commit may fail and is tried again until it holds. */
  private enter(row: RecordingRow, verdict: Verdict): RecordingRow {
    const change = {
      state: verdict.state,
      duration: verdict.durationMs,
      size: verdict.sizeBytes,
      timestamp_end: row.timestamp_start + verdict.durationMs,
      parts: row.parts.map((part) => ({ ...part, duration: verdict.durationMs, size: verdict.sizeBytes })),
    }
    try {
      this.catalogue.update(row.id, change)
    } catch (error) {
      this.log.error({ id: row.id, error: errorText(error) }, 'catalogue cannot be written; trying again')
      const timer = setTimeout(() => {
        this.retries.delete(timer)
        this.enter(row, verdict)
      }, RETRY_MS)
      this.retries.add(timer)
    }
    return { ...row, ...change }
  }

  private transition(slot: Slot, camera: number, trigger: RecordingTrigger): void {
    slot.state = nextRecordingState(slot.state, trigger) ?? slot.state
    if (camera !== this.cameras.active) return
    this.bus.emit('state', { key: 'recordingState', value: slot.state })
    this.bus.emit('state', { key: 'record', value: slot.state !== 'stopped' })
    this.bus.emit('state', { key: 'currentRecordingFile', value: slot.active ? basename(slot.active.hostPath) : '' })
  }

  private publish(type: string, row: RecordingRow, more: Record<string, unknown>): void {
    this.bus.publish('recording', type, { id: row.id, camera: row.camera, filename: row.filename, path: row.path, ...more })
  }
}

function newRow(plan: RecordingPlan, start: Date, filename: string, path: string): NewRow {
  return {
    filename,
    media_type: 'video',
    encoding: 'mp4',
    video_codec: 'h264',
    audio_codec: null,
    timestamp_start: start.getTime(),
    timestamp_end: start.getTime(),
    duration: 0,
    size: 0,
    resolution: `${plan.mode.width}x${plan.mode.height}`,
    fps: plan.mode.fps,
    state: 'recording',
    tag_markers: 0,
    path,
    parts: [{ filename, path, duration: 0, size: 0, sha256: null }],
    camera: plan.camera,
    time_synced: true,
    boot_id: '',
    trigger: 'manual',
    created_by: currentActor()?.username ?? null,
  }
}

function newActive(row: RecordingRow, plan: RecordingPlan, hostPath: string): Active {
  let finish: (row: RecordingRow) => void = () => {}
  const finished = new Promise<RecordingRow>((resolve) => {
    finish = resolve
  })
  return { row, plan, hostPath, startedAt: performance.now(), finished, finish, ending: false }
}
