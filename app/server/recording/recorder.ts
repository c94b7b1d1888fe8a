/**
 * Recording control: one slot a camera with the specification's state machine. The helper writes the files; this component decides, keeps
 * the catalogue true, and turns every way in which a recording can end (stop, duration, full disk, dead helper) into the same finish.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { currentActor } from '../actor.ts'
import type { Bus, ServerEvent } from '../bus.ts'
import { type Cameras, helperToApi } from '../cameras/index.ts'
import type { Component } from '../component.ts'
import { ApiError, Conflict, errorText, UnsupportedSetting } from '../errors.ts'
import type { DeviceStorage } from '../files/index.ts'
import type { Logger } from '../log.ts'
import type { CameraState, MediaSupervisor, RecorderBegan, RecorderEnded, RecorderPart } from '../media/index.ts'
import type { Catalogue } from './catalogue.ts'
import { ChangeGate } from './change-gate.ts'
import { Finishing } from './finishing.ts'
import { Insistence } from './insistence.ts'
import { Library } from './library.ts'
import { nextRecordingState, type RecordingState } from './machine.ts'
import { type RecorderOptions, withUsual } from './options.ts'
import { mediaTime, planRecording, type RecordingPlan, type RecordingRequest } from './plan.ts'
import { Progress } from './progress.ts'
import type { Removal } from './removal.ts'
import { Resumption } from './resumption.ts'
import type { RecordingRow } from './row.ts'
import { type Active, type EndReason, type Origin, type Slot, Slots } from './slots.ts'
import { SpaceWatch } from './space.ts'
import { Starting } from './starting.ts'
import type { NewTag, Tag, Tags } from './tags.ts'

/** A stop before that would leave a file without a single picture: the first key frame takes a moment. */
const SHORTEST_MS = 400
/** What a camera whose mode was just changed may take to deliver it. */
const MODE_PATIENCE_MS = 2500

export interface RecordingStatus {
  readonly camera: number
  readonly state: RecordingState
  /** What is being recorded, or what a paused recording had recorded when the helper died. */
  readonly row: RecordingRow | null
  readonly plan: RecordingPlan | null
  /** Name of the file that is being written. */
  readonly filename: string | null
  readonly part: number
  /** Real time without pauses. */
  readonly elapsedMs: number
  /** How far the file plays. */
  readonly positionMs: number
  readonly estimatedBytes: number | null
  readonly remainingBytes: number | null
  readonly lastEnd: Slot['lastEnd']
}

export class Recorder implements Component {
  /** What is recorded, and what is being recorded. */
  readonly library: Library
  private readonly options: RecorderOptions
  private readonly slots = new Slots((slot) => this.tellState(slot))
  private readonly insistence: Insistence
  private readonly finishing: Finishing
  private readonly starting: Starting
  private readonly progress: Progress
  private readonly space: SpaceWatch
  private readonly resumption: Resumption
  private readonly changes = new ChangeGate()
  private stopping = false
  private readonly onBegan = (event: RecorderBegan) => this.began(event)
  private readonly onPart = (part: RecorderPart) => this.partClosed(part)
  private readonly onEnded = (event: RecorderEnded) => this.ended(event)
  private readonly onDown = () => this.helperLost()
  private readonly onCamera = (state: CameraState) => this.cameraState(state)
  private readonly onEvent = ({ category }: ServerEvent) => {
    if (category === 'camera' || category === 'config') for (const slot of this.slots.all()) this.resumption.check(slot)
  }

  constructor(
    private readonly cameras: Cameras,
    private readonly media: MediaSupervisor,
    private readonly catalogue: Catalogue,
    private readonly tags: Tags,
    removal: Removal,
    storage: DeviceStorage,
    private readonly bus: Bus,
    private readonly log: Logger,
    options: Partial<RecorderOptions> = {},
  ) {
    this.options = withUsual(storage, options)
    this.insistence = new Insistence(log)
    this.finishing = new Finishing(catalogue, storage, bus, log, this.insistence)
    this.starting = new Starting(cameras, media, catalogue, log, this.options, this.insistence)
    this.progress = new Progress(catalogue, log)
    this.library = new Library(catalogue, removal, storage, this.slots)
    this.resumption = new Resumption(
      log,
      (...event) => this.tell(() => this.finishing.publish(...event)),
      (slot) => void this.takeUp(slot),
      (camera) => this.cameras.view(camera).settings,
    )
    this.space = new SpaceWatch(
      this.options,
      log,
      () => this.slots.running().length > 0,
      (reason) => this.endAll(reason),
    )
  }

  /** What an earlier process left unfinished is judged before anything new begins. */
  async start(): Promise<void> {
    await this.finishing.recover()
    this.media.on('recorder.began', this.onBegan).on('recorder.part', this.onPart).on('recorder.ended', this.onEnded)
    this.media.on('down', this.onDown).on('camera.state', this.onCamera)
    this.bus.on('event', this.onEvent)
  }

  /** Finishes every running recording, paused or not. */
  async stop(): Promise<void> {
    this.stopping = true
    const ending = this.slots.all().map((slot) =>
      this.slots.inTurn(slot.camera, async ({ active }) => {
        if (active) await this.end(active)
      }),
    )
    await Promise.allSettled(ending)
    this.media.off('recorder.began', this.onBegan).off('recorder.part', this.onPart).off('recorder.ended', this.onEnded)
    this.media.off('down', this.onDown).off('camera.state', this.onCamera)
    this.bus.off('event', this.onEvent)
    this.resumption.stop()
    this.space.stop()
    this.insistence.stop()
  }

  /** Refused (and nothing changes) unless stopped, without a picture, or with too little space. */
  startRecording(
    request: RecordingRequest,
    origin: Origin = { trigger: 'manual', createdBy: currentActor()?.username ?? null },
  ): Promise<{ row: RecordingRow; estimatedBytes: number }> {
    const camera = this.cameras.view(request.camera).id
    return this.slots.inTurn(camera, async (slot) => {
      if (nextRecordingState(slot.state, 'start') === undefined) {
        this.log.warn({ camera, state: slot.state }, 'start refused: already recording')
        throw new ApiError('RECORDING_IN_PROGRESS', 'A recording is already running', `camera ${camera}`)
      }
      return this.asStarting(slot, async () => {
        const { clock, defaults, limits, keepsPast } = this.options
        if (request.pre_roll && !keepsPast(camera)) throw new UnsupportedSetting('pre_roll', 'The setting camera.pre_roll is off')
        const plan = planRecording(request, this.cameras.view(camera), clock.now(), defaults())
        await this.space.demand(plan.estimatedBytes, limits().startMarginBytes)
        return { row: await this.begin(slot, plan, origin, 'start'), estimatedBytes: plan.estimatedBytes }
      })
    })
  }

  /** Resolves when the file is finalised and the catalogue says so. */
  stopRecording(camera: number = this.cameras.active): Promise<RecordingRow> {
    this.cameras.view(camera)
    return this.slots.inTurn(camera, async (slot) => {
      const { active, resume, state } = slot
      // Where the helper died over a paused one there is nothing left to stop, and without a picture no way to resume: it may be given up.
      if (state === 'paused' && active) throw new Conflict('The recording is paused; resume it to stop it', `camera ${camera}`)
      slot.resume = null
      // Stopped between the helper's death and the camera's return: that recording has ended already.
      if (!active && resume) {
        if (state === 'paused') this.slots.move(slot, 'ended')
        return this.catalogue.get(resume.row.id) ?? resume.row
      }
      if (!active || nextRecordingState(state, 'stop') === undefined)
        throw new Conflict('No recording is running', `camera ${camera}`)
      return this.end(active)
    })
  }

  pauseRecording(camera: number = this.cameras.active): Promise<RecordingRow> {
    this.cameras.view(camera)
    return this.slots.inTurn(camera, async (slot) => {
      const { active, state } = slot
      if (!active || nextRecordingState(state, 'pause') === undefined) {
        const why = state === 'paused' ? 'The recording is paused already' : 'No recording is running'
        throw new Conflict(why, `camera ${camera}`)
      }
      await this.ask(camera, () => this.media.call('recorder.pause', { id: active.row.id }))
      if (slot.active !== active) throw new Conflict('The recording has just ended', `camera ${camera}`)
      active.watch.pause()
      this.slots.move(slot, 'pause')
      this.finishing.publish('paused', active.row, { duration_ms: Math.round(active.watch.ms) })
      return active.row
    })
  }

  /** Goes on in the same file; in a new one where the helper died during the pause. */
  resumeRecording(camera: number = this.cameras.active): Promise<RecordingRow> {
    this.cameras.view(camera)
    return this.slots.inTurn(camera, async (slot) => {
      const { active, resume, state } = slot
      if (nextRecordingState(state, 'resume') === undefined) throw new Conflict('No recording is paused', `camera ${camera}`)
      if (!active && resume) {
        await this.space.demand(0, this.options.limits().startMarginBytes)
        const row = await this.begin(slot, resume.plan, resume.origin, 'resume')
        this.finishing.publish('resumed', row, { after: resume.row.id })
        return row
      }
      if (!active) throw new Conflict('No recording is paused', `camera ${camera}`)
      await this.ask(camera, () => this.media.call('recorder.resume', { id: active.row.id }))
      if (slot.active !== active) throw new Conflict('The recording has just ended', `camera ${camera}`)
      active.watch.resume()
      this.slots.move(slot, 'resume')
      this.finishing.publish('resumed', active.row, { duration_ms: Math.round(active.watch.ms) })
      return active.row
    })
  }

  /** Those that start and paused ones too: they hold their file and their settings. */
  isRecording(camera: number): boolean {
    const slot = this.slots.get(camera)
    return slot.starting || slot.active !== null || slot.state !== 'stopped'
  }

  /** A change that is refused during a recording: starts wait for its end. The caller has just asked whether there is one. */
  holdStarts<T>(change: () => Promise<T>): Promise<T> {
    return this.changes.hold(change)
  }

  get anyRecording(): boolean {
    return this.slots.all().some(({ camera }) => this.isRecording(camera))
  }

  status(camera: number = this.cameras.active): RecordingStatus {
    this.cameras.view(camera)
    const { state, active, resume, lastEnd } = this.slots.get(camera)
    const kept = state === 'paused' ? resume : null
    const elapsedMs = active?.watch.ms ?? 0
    return {
      camera,
      state,
      row: active?.row ?? kept?.row ?? null,
      plan: active?.plan ?? kept?.plan ?? null,
      filename: active?.filename ?? null,
      part: active?.part ?? 1,
      elapsedMs,
      positionMs: active ? mediaTime(active.plan, elapsedMs) : 0,
      estimatedBytes: active?.plan.estimatedBytes ?? null,
      remainingBytes: this.options.space()?.available ?? null,
      lastEnd,
    }
  }

  /** Marks the running recording; `timestamp` is the present moment unless given (milliseconds into the recording). */
  tag(camera: number | undefined, tag: Omit<NewTag, 'timestamp'> & { readonly timestamp?: number }): Tag {
    const { row, positionMs, camera: id } = this.status(camera)
    if (!row) throw new Conflict('No recording is running', `camera ${id}`)
    return this.tags.add(row, { ...tag, timestamp: tag.timestamp ?? Math.round(positionMs) })
  }

  /** What may not change during a recording may not from here on, the wait for room included. */
  private async asStarting<T>(slot: Slot, work: () => Promise<T>): Promise<T> {
    const waited = await this.changes.enter(() => {
      slot.starting = true
    })
    try {
      if (waited) await this.cameras.delivering(slot.camera, MODE_PATIENCE_MS)
      return await work()
    } finally {
      slot.starting = false
    }
  }

  private async begin(slot: Slot, plan: RecordingPlan, origin: Origin, trigger: 'start' | 'resume'): Promise<RecordingRow> {
    const active = await this.starting.begin(slot, plan, origin)
    const { row } = active
    slot.resume = null
    if (!active.ending) this.slots.move(slot, trigger)
    this.space.watch()
    this.log.info({ id: row.id, camera: plan.camera, filename: row.filename, mode: plan.kind }, 'recording started')
    this.finishing.publish('started', row, { estimated_size: plan.estimatedBytes, mode: plan.kind, trigger: origin.trigger })
    return row
  }

  /** Asks the helper to finalise and waits until the catalogue knows; a helper that is gone has been dealt with by `helperLost`. */
  private async end(active: Active): Promise<RecordingRow> {
    const actor = currentActor()
    if (actor) active.stoppedBy = actor
    active.stopping = true
    await delay(Math.max(0, active.startedAt + SHORTEST_MS - performance.now()))
    await this.media.call('recorder.stop', { id: active.row.id }).catch((error) => {
      this.log.warn({ id: active.row.id, error: errorText(error) }, 'recorder did not stop by itself')
      return this.finish(active, 'helper_lost')
    })
    return active.finished
  }

  private endAll(reason: 'disk_full' | 'storage_lost'): void {
    for (const active of this.slots.running().filter(({ stopReason }) => stopReason === undefined)) {
      active.stopReason = reason
      this.log.error({ id: active.row.id, reason }, 'recording ends')
      void this.end(active)
    }
  }

  private began(event: RecorderBegan): void {
    const active = this.slots.byRecording(event.id)
    if (active) this.progress.began(active, event)
  }

  private partClosed(part: RecorderPart): void {
    const active = this.slots.byRecording(part.id)
    if (!active || !this.progress.partClosed(active, part)) return
    this.finishing.publish('part', active.row, { part: part.index, duration_ms: part.duration_ms, size: part.size_bytes })
    this.tellState(this.slots.get(active.plan.camera))
  }

  private ended({ id, reason, message }: RecorderEnded): void {
    const active = this.slots.byRecording(id)
    if (!active) return
    if (message) this.log.warn({ id, reason, message }, 'recorder ended')
    void this.finish(active, active.stopReason ?? reason)
  }

  private helperLost(): void {
    for (const slot of this.slots.all()) {
      const { active, state } = slot
      // A start that is still under way fails by itself.
      if (!active || state === 'stopped' || this.stopping) continue
      if (!active.stopping) this.resumption.expect(slot, active)
      void this.finish(active, 'helper_lost')
    }
  }

  /** After a crash of the helper, what was being recorded goes on in a new file as soon as the camera delivers again. */
  private cameraState({ id, state }: CameraState): void {
    if (state === 'streaming') void this.takeUp(this.slots.get(id))
  }

  private async takeUp({ camera, resume: expected }: Slot): Promise<void> {
    if (!expected) return
    // That it has ended is told before that it goes on.
    await expected.finished
    await this.slots.inTurn(camera, async (slot) => {
      if (this.stopping || !this.cameras.view(camera).connected) return
      await this.resumption.attempt(slot, (resume, plan) =>
        this.asStarting(slot, async () => {
          await this.space.demand(0, this.options.limits().startMarginBytes)
          const row = await this.begin(slot, plan(), resume.origin, 'start')
          if (slot.active) slot.active.deaths = resume.deaths
          this.finishing.publish('resumed', row, { after: resume.row.id })
        }),
      )
    })
  }

  private async finish(active: Active, reason: EndReason): Promise<void> {
    if (active.ending) return
    active.ending = true
    const figures = { recordedMs: active.watch.ms, pausedMs: active.watch.pausedMs }
    const { camera, captureFps } = active.plan
    const slot = this.slots.get(camera)
    slot.active = null
    slot.lastEnd = { reason, timestamp: this.options.clock.now().toISOString() }
    // What was paused stays so, until its user resumes it.
    if (slot.state === 'paused' && slot.resume) this.tellState(slot)
    else this.slots.move(slot, 'ended')
    if (captureFps !== undefined) await this.cameras.captureAsSet(camera)
    const row = await this.finishing.finish(active, reason, figures)
    active.finish(row)
    if (reason === 'disk_full' || reason === 'storage_lost') {
      const available = this.options.space()?.available ?? null
      const type = reason === 'disk_full' ? 'storage_full' : 'storage_lost'
      this.tell(() => this.bus.publish('alert', type, { recording: row.id, available }))
    }
  }

  private tellState({ camera, state, active }: Slot): void {
    if (camera !== this.cameras.active) return
    const values = { recordingState: state, record: state !== 'stopped', currentRecordingFile: active?.filename ?? '' }
    for (const [key, value] of Object.entries(values)) this.tell(() => this.bus.emit('state', { key, value }))
  }

  /** What happens goes on, whatever those who hear of it can make of it. */
  private tell(say: () => void): void {
    try {
      say()
    } catch (error) {
      this.log.error({ error: errorText(error) }, 'what a recording does could not be told')
    }
  }

  private async ask<T>(camera: number, call: () => Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      throw helperToApi(error, camera)
    }
  }
}
