/**
 * The state interface: named values that clients read, set in batches, and follow. A batch is checked whole (names, rights, ranges, and what
 * the camera can do) before any of it acts.
 */
import type { TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Bus } from '../bus.ts'
import { type Caller, seesCamera } from '../caller.ts'
import type { Cameras } from '../cameras/index.ts'
import { formatResolution, parseResolution } from '../cameras/index.ts'
import type { Component } from '../component.ts'
import { ApiError, Conflict, InvalidRequest, PermissionDenied, UnsupportedSetting } from '../errors.ts'
import { type Categories, nextRecordingState, type Places, type Recorder, type RecordingStorage } from '../recording/index.ts'
import type { Snapshots } from '../snapshots/index.ts'
import type { Store, Table } from '../store/index.ts'
import { ACTING_KEYS, type ActingKey, MEDIA_KEY, SHOWN_KEYS, STORED_KEYS } from './keys.ts'
import { holdsOne, type Permission } from './permissions.ts'
import { type RecordingCommand, recordingCommand } from './recording-command.ts'
import { withTwins } from './recording-settings.ts'

interface Key {
  readonly schema: TSchema
  readonly read: readonly Permission[]
  readonly write: readonly Permission[]
}

/** What a change of the mode may take before the same batch records or takes a still. */
const MODE_PATIENCE_MS = 2500

export type Batch = Readonly<Record<string, unknown>>

/** What of a caller decides about the keys. */
export type KeyUser = Pick<Caller, 'role' | 'cameras'>

/** A key as a client may want to know it. */
export interface KeyInfo {
  readonly schema: TSchema
  readonly read: readonly Permission[]
  readonly write: readonly Permission[]
  /** Those that act on the camera and the recorder have none. */
  readonly default?: unknown
}

const KEYS: ReadonlyMap<string, Key> = new Map([
  ...Object.entries(ACTING_KEYS).map(([name, schema]): [string, Key] => [name, { schema, ...MEDIA_KEY }]),
  ...Object.entries(STORED_KEYS),
  ...Object.entries(SHOWN_KEYS),
])
const CAMERA_KEYS = ['brightness', 'contrast', 'saturation', 'resolution', 'fps'] as const

export class State implements Component {
  private settings: Table<string, unknown> | undefined
  /** Stills that are being taken. */
  private snapping = 0

  constructor(
    private readonly store: Store,
    private readonly cameras: Cameras,
    private readonly recorder: Recorder,
    private readonly snapshots: Snapshots,
    private readonly places: Places,
    private readonly categories: Categories,
    private readonly bus: Bus,
  ) {}

  start(): void {
    this.settings = this.store.table('settings')
  }

  stop(): void {
    this.settings = undefined
  }

  has(name: string): boolean {
    return KEYS.has(name)
  }

  mayRead(name: string, user: KeyUser): boolean {
    return holdsOne(user.role, KEYS.get(name)?.read ?? []) && this.seesKey(name, user)
  }

  mayWrite(name: string, user: KeyUser): boolean {
    return holdsOne(user.role, KEYS.get(name)?.write ?? []) && this.seesKey(name, user)
  }

  /** Every key that the user may read, as data. */
  describe(user: KeyUser): ReadonlyMap<string, KeyInfo> {
    const readable = [...KEYS].filter(([name]) => this.mayRead(name, user))
    return new Map(
      readable.map(([name, key]) => {
        const stored = STORED_KEYS[name]
        const { schema, read, write } = key
        return [name, { schema, read, write, ...(stored && { default: stored.initial }) }]
      }),
    )
  }

  /** Everything that the user may read. */
  readAll(user: KeyUser): Batch {
    const readable = [...KEYS.keys()].filter((name) => this.mayRead(name, user))
    return Object.fromEntries(readable.map((name) => [name, this.value(name)]))
  }

  read(names: readonly string[], user: KeyUser): Batch {
    for (const name of names) {
      if (!KEYS.has(name)) throw new InvalidRequest(name, `There is no state key ${name}`)
      if (!this.mayRead(name, user)) throw new PermissionDenied(name)
    }
    return Object.fromEntries(names.map((name) => [name, this.value(name)]))
  }

  /** Sets all keys of the batch, or throws and has set none that could be checked beforehand. */
  async write(sent: Batch, user: KeyUser): Promise<void> {
    for (const [name, value] of Object.entries(sent)) this.checkKey(name, value, user)
    this.checkCamera(sent)
    this.checkRecording(this.withTwins(sent))
    const batch = await this.change(sent)
    const acts = batch.snap === true || this.command(batch) === 'start'
    if (acts && ('resolution' in batch || 'fps' in batch)) await this.cameras.delivering(this.cameras.active, MODE_PATIENCE_MS)
    await this.applyRecording(batch)
    if (batch.snap === true) await this.snap()
  }

  /** All but the recording and the still. Recordings do not begin in the middle of what they would have forbidden. */
  private change(sent: Batch): Promise<Batch> {
    const change = async () => {
      if ('recordingStorage' in sent) await this.places.check(sent.recordingStorage as RecordingStorage)
      await this.applyCamera(sent)
      // While that took its time, others may have set the twins of these, or begun to record.
      const batch = this.withTwins(sent)
      this.checkRecording(batch)
      this.applyStored(batch)
      return batch
    }
    const forbidden = 'resolution' in sent || 'fps' in sent || this.changedSettings(this.withTwins(sent)).length > 0
    return forbidden ? this.recorder.holdStarts(change) : change()
  }

  private value(name: string): unknown {
    const stored = STORED_KEYS[name]
    if (stored) return this.settings?.get(name) ?? stored.initial
    if (name === 'tagCategories') return this.categories.list()
    const { settings } = this.cameras.view()
    const recording = this.recorder.status()
    const acting: Record<ActingKey, unknown> = {
      brightness: settings.brightness,
      contrast: settings.contrast,
      saturation: settings.saturation,
      resolution: formatResolution(settings),
      fps: settings.fps,
      record: recording.state !== 'stopped',
      snap: this.snapping > 0,
      recordingState: recording.state,
      currentRecordingFile: recording.filename ?? '',
      // No board maps a light here: there is no value.
      'cam1-light': null,
      light0: null,
    }
    return acting[name as ActingKey]
  }

  /** The keys of the active camera are closed to those who may not see it. */
  private seesKey(name: string, user: KeyUser): boolean {
    return !(name in ACTING_KEYS) || seesCamera(user, this.cameras.active)
  }

  private checkKey(name: string, value: unknown, user: KeyUser): void {
    const key = KEYS.get(name)
    if (!key) throw new InvalidRequest(name, `There is no state key ${name}`)
    if (!this.mayWrite(name, user)) throw new PermissionDenied(name)
    if (!Value.Check(key.schema, value)) {
      const error = Value.Errors(key.schema, value).First()
      const field = `${name}${error?.path.replaceAll('/', '.') ?? ''}`
      throw new InvalidRequest(field, `${field}: ${error?.message ?? 'invalid value'}`)
    }
    const { resolution } = (STORED_KEYS[name] ? value : {}) as { resolution?: string }
    if (resolution !== undefined && !parseResolution(resolution)) throw badResolution(`${name}.resolution`)
    if (name === 'currentRecordingFile') throw new UnsupportedSetting(name, 'This key is written by the recorder alone')
    if (name === 'cam1-light' || name === 'light0') throw new UnsupportedSetting(name, 'This board has no such light')
  }

  private checkCamera(batch: Batch): void {
    const change = cameraChange(batch)
    this.cameras.checkChange(this.cameras.active, change)
    if (('width' in change || 'fps' in change) && this.recorder.isRecording(this.cameras.active)) {
      throw new ApiError('RECORDING_IN_PROGRESS', 'Resolution and fps cannot change during a recording', 'resolution, fps')
    }
  }

  private checkRecording(batch: Batch): void {
    const changed = this.changedSettings(batch)[0]
    if (changed && this.recorder.anyRecording) {
      throw new ApiError('RECORDING_IN_PROGRESS', 'Settings cannot change during a recording', changed[0])
    }
    const { state } = this.recorder.status()
    const command = this.command(batch)
    if (command === 'start' && state !== 'stopped')
      throw new ApiError('RECORDING_IN_PROGRESS', 'A recording is already running', 'record')
    const refused = command !== undefined && command !== 'start' && nextRecordingState(state, command) === undefined
    if (refused) throw new Conflict(`A recording that is ${state} cannot take this`, command)
  }

  private withTwins(sent: Batch): Batch {
    return withTwins(sent, (key) => this.value(key))
  }

  private command(batch: Batch): RecordingCommand | undefined {
    return recordingCommand(batch, this.recorder.status().state)
  }

  private changedSettings(batch: Batch): [string, unknown][] {
    return Object.entries(batch).filter(([name, value]) => STORED_KEYS[name] && !Value.Equal(this.value(name), value))
  }

  private async applyCamera(batch: Batch): Promise<void> {
    if (CAMERA_KEYS.some((key) => key in batch)) await this.cameras.configure(this.cameras.active, cameraChange(batch))
  }

  private applyStored(batch: Batch): void {
    const changed = this.changedSettings(batch)
    if (changed.length === 0) return
    this.store.transaction(() => {
      for (const [name, value] of changed) this.settings?.put(name, value)
    })
    for (const [key, value] of changed) this.bus.emit('state', { key, value })
    this.bus.publish('config', 'settings_changed', { keys: changed.map(([name]) => name) })
  }

  private async applyRecording(batch: Batch): Promise<void> {
    const command = this.command(batch)
    if (command === 'start') await this.recorder.startRecording({})
    if (command === 'stop') await this.recorder.stopRecording()
    if (command === 'pause') await this.recorder.pauseRecording()
    if (command === 'resume') await this.recorder.resumeRecording()
  }

  /** `snap` is true while the still is being taken, so that everybody sees that one is. */
  private async snap(): Promise<void> {
    this.snapping++
    this.bus.emit('state', { key: 'snap', value: true })
    try {
      await this.snapshots.take({})
    } finally {
      this.snapping--
      if (this.snapping === 0) this.bus.emit('state', { key: 'snap', value: false })
    }
  }
}

function badResolution(field: string): ApiError {
  return new ApiError('INVALID_RESOLUTION', 'Both sides must be even and at most 7680x4320', field)
}

/** The camera's part of a batch, in the camera's terms. The values have passed their schemas. */
function cameraChange(batch: Batch): Record<string, number> {
  const change: Record<string, number> = {}
  for (const key of ['brightness', 'contrast', 'saturation', 'fps'] as const) {
    if (key in batch) change[key] = batch[key] as number
  }
  if ('resolution' in batch) {
    const size = parseResolution(batch.resolution as string)
    if (!size) throw badResolution('resolution')
    Object.assign(change, size)
  }
  return change
}

/** The schemas of all keys, by name. */
export function stateKeys(): Readonly<Record<string, TSchema>> {
  return Object.fromEntries([...KEYS].map(([name, { schema }]) => [name, schema]))
}
