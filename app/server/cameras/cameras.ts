/** The cameras: from what each should do (persisted) to what it does (told by the helper). */
import { once } from 'node:events'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { ApiError, CameraNotConnected, NotFound, UnsupportedSetting } from '../errors.ts'
import type { Logger } from '../log.ts'
import {
  type CameraState,
  type CameraStats,
  type HelperStats,
  HelperTimeout,
  type MediaSupervisor,
  type Mode,
} from '../media/index.ts'
import type { Store, Table } from '../store/index.ts'
import { Applying } from './applying.ts'
import { Camera, type CameraSettings, type CameraView, inTurn, type Persisted, streamsOf, view } from './camera.ts'
import { ask } from './refusals.ts'
import { type FindSound, Sound } from './sound.ts'
import { type CameraSpec, formatResolution, type Size } from './spec.ts'

export interface Still {
  readonly jpeg: Buffer
  readonly width: number
  readonly height: number
  readonly timestampMs: number
}

const CAPTURE_PATIENCE_MS = 4000
const MAX_TEST_SIZE: Size = { width: 3840, height: 2160 }

export class Cameras implements Component {
  private readonly cameras: Camera[] = []
  private table: Table<number, Persisted> | undefined
  private activeId = 0
  private readonly sound: Sound
  private readonly applying: Applying
  private readonly onUp = () => {
    for (const camera of this.cameras) void this.applying.ensure(camera)
  }
  private readonly onDown = () => this.forgetStates()
  private readonly onState = (state: CameraState) => this.stateChanged(state)

  constructor(
    private readonly specs: readonly CameraSpec[],
    private readonly store: Store,
    private readonly media: MediaSupervisor,
    private readonly bus: Bus,
    private readonly log: Logger,
    findSound: FindSound,
    /** Of cameras for which nobody has chosen one. */
    private readonly defaultMode: () => Mode,
  ) {
    this.sound = new Sound(media, findSound, log)
    this.applying = new Applying(media, this.sound, log, () => this.activeId)
  }

  /** Starts before the helper, so that its first `up` finds the cameras to apply. */
  start(): void {
    this.table = this.store.table('cameras')
    for (const [id, spec] of this.specs.entries()) {
      this.cameras.push(new Camera(id, spec, this.table.get(id), this.defaultMode()))
    }
    this.sound.start(this.cameras)
    this.media.on('up', this.onUp).on('down', this.onDown).on('camera.state', this.onState)
  }

  stop(): void {
    this.media.off('up', this.onUp).off('down', this.onDown).off('camera.state', this.onState)
    this.sound.stop()
    this.applying.stop()
    this.cameras.length = 0
  }

  /** Resolves when no camera is still starting, or after `patienceMs`. */
  async settled(patienceMs: number): Promise<void> {
    const deadline = AbortSignal.timeout(patienceMs)
    while (this.list().some(({ state }) => state === 'starting') && !deadline.aborted) {
      await once(this.media, 'camera.state', { signal: deadline }).catch(() => undefined)
    }
  }

  get active(): number {
    return this.activeId
  }

  list(): CameraView[] {
    return this.cameras.map(view)
  }

  /** The camera asked for, or the active one. */
  view(id: number = this.activeId): CameraView {
    return view(this.camera(id))
  }

  /** Changes mode or controls together; the stored settings change only when the helper took them. */
  configure(id: number, change: Partial<Omit<CameraSettings, 'enabled'>>): Promise<void> {
    return this.reconfigure(id, change, 'width' in change || 'height' in change || 'fps' in change)
  }

  /** Throws where a camera that follows the configuration cannot take this mode. */
  checkDefaultMode(mode: Mode): void {
    for (const { id } of this.followers()) this.checkChange(id, mode)
  }

  /** The configuration has another mode for the cameras that have none of their own. */
  async applyDefaultMode(mode: Mode): Promise<void> {
    for (const { id } of this.followers()) await this.reconfigure(id, mode, false)
  }

  /** Opens every device that is in use anew. */
  async restartAll(): Promise<void> {
    for (const { id } of this.cameras.filter(({ settings }) => settings.enabled))
      await ask(id, () => this.media.call('camera.restart', { id }))
  }

  /** Whether the camera's mode is its own, not the configuration's. */
  choseMode(id: number): boolean {
    return this.camera(id).modeChosen
  }

  /** Into the table alone: `reload` follows when the transaction around it is stored. */
  stage(entries: readonly { id: number; spec: string; settings: CameraSettings; mode_chosen: boolean }[]): void {
    for (const { id, ...persisted } of entries) this.table?.put(id, persisted)
  }

  /** Makes what is stored act. A helper that is not there gets it when it is back. */
  async reload(ids: readonly number[]): Promise<void> {
    for (const id of ids) await inTurn(this.camera(id), (camera) => this.adopt(camera))
  }

  private async adopt(camera: Camera): Promise<void> {
    const { id, spec, settings: before } = camera
    const stored = new Camera(id, spec, this.table?.get(id), this.defaultMode())
    try {
      this.take(camera, stored.settings, stored.modeChosen)
      this.bus.publish('config', 'camera_changed', { camera: id, ...stored.settings })
      // Taken away and added: whatever has changed, the helper has it all.
      if (before.enabled) await this.applying.remove(camera)
      if (!camera.settings.enabled) camera.live = null
      else await this.applying.apply(camera)
    } catch (error) {
      this.applying.failed(camera, error)
    }
  }

  private followers(): Camera[] {
    return this.cameras.filter(({ modeChosen }) => !modeChosen)
  }

  private reconfigure(id: number, change: Partial<Omit<CameraSettings, 'enabled'>>, chosen: boolean): Promise<void> {
    this.checkChange(id, change)
    return inTurn(this.camera(id), async (camera) => {
      // Somebody has chosen meanwhile.
      if (!chosen && camera.modeChosen && 'width' in change) return
      const next = { ...camera.settings, ...change }
      const changed = (keys: readonly (keyof CameraSettings)[]) => keys.some((key) => next[key] !== camera.settings[key])
      const newMode = changed(['width', 'height', 'fps'])
      const newControls = changed(['brightness', 'contrast', 'saturation'])
      const newAudio = changed(['audio_codec'])
      const chooses = chosen && !camera.modeChosen
      if (!newMode && !newControls && !newAudio && !chooses) return
      const { enabled, brightness, contrast, saturation } = next
      const mode = { width: next.width, height: next.height, fps: next.fps }
      const streams = streamsOf(next)
      await ask(id, () =>
        this.inParts(camera, [
          ...(enabled && (newMode || newAudio)
            ? [() => this.media.call('camera.configure', { id, ...(newMode && { mode }), streams })]
            : []),
          ...(enabled && newControls
            ? [() => this.media.call('camera.set_controls', { id, brightness, contrast, saturation })]
            : []),
          async () => this.save(camera, next, camera.modeChosen || chooses),
        ]),
      )
      this.bus.publish('config', 'camera_changed', { camera: id, ...change })
    })
  }

  /** The last part stores it. Where the helper took a part, or does not say whether it did, it is brought back to what is stored. */
  private async inParts(camera: Camera, parts: readonly (() => Promise<unknown>)[]): Promise<void> {
    for (const [done, part] of parts.entries()) {
      try {
        await part()
      } catch (error) {
        if (done > 0 || error instanceof HelperTimeout) this.applying.failed(camera, error)
        throw error
      }
    }
  }

  /** Throws what `configure` would throw for a value that this camera cannot take. */
  checkChange(id: number, change: Partial<Omit<CameraSettings, 'enabled'>>): void {
    const { spec, settings } = this.camera(id)
    const { width, height } = { ...settings, ...change }
    if (spec.source.type === 'test' && (width > MAX_TEST_SIZE.width || height > MAX_TEST_SIZE.height)) {
      throw new ApiError(
        'INVALID_RESOLUTION',
        `The test camera delivers at most ${formatResolution(MAX_TEST_SIZE)}`,
        'resolution',
      )
    }
  }

  /** Stops or starts the capture; stopped, the device is released and its RTSP clients are disconnected. */
  setEnabled(id: number, enabled: boolean): Promise<void> {
    return inTurn(this.camera(id), async (camera) => {
      if (camera.settings.enabled === enabled) return
      await ask(id, async () => {
        try {
          if (enabled) await this.applying.apply(camera)
          else await this.applying.remove(camera)
          if (!enabled) camera.live = null
          this.save(camera, { ...camera.settings, enabled }, camera.modeChosen)
        } catch (error) {
          // The helper may have done what is not stored.
          this.applying.failed(camera, error)
          throw error
        }
      })
      this.bus.publish('camera', enabled ? 'started' : 'stopped', { camera: id })
    })
  }

  /** Resolves when the camera delivers the mode that was set, or after `patienceMs` (a device may deliver another one). */
  async delivering(id: number, patienceMs: number): Promise<void> {
    const camera = this.camera(id)
    const asked = () =>
      camera.live?.state === 'streaming' &&
      camera.live.width === camera.settings.width &&
      camera.live.height === camera.settings.height
    const deadline = AbortSignal.timeout(patienceMs)
    while (!asked() && !deadline.aborted) await once(this.media, 'camera.state', { signal: deadline }).catch(() => undefined)
  }

  /** Captures at another rate until `captureAsSet`; the streams keep theirs. Throws when the camera does not deliver it. */
  captureAt(id: number, fps: number): Promise<void> {
    return inTurn(this.camera(id), async (camera) => {
      camera.captureFps = fps
      await ask(id, () => this.media.call('camera.configure', { id, mode: { ...camera.mode, fps } }))
      const deadline = AbortSignal.timeout(CAPTURE_PATIENCE_MS)
      const delivered = () => camera.live?.state === 'streaming' && camera.live.fps === fps
      while (!delivered() && !deadline.aborted) {
        await once(this.media, 'camera.state', { signal: deadline }).catch(() => undefined)
      }
      if (!delivered()) throw new UnsupportedSetting('fps', `The camera does not deliver ${fps} frames per second`)
    })
  }

  captureAsSet(id: number): Promise<void> {
    return inTurn(this.camera(id), async (camera) => {
      if (camera.captureFps === null) return
      camera.captureFps = null
      try {
        await this.media.call('camera.configure', { id, mode: camera.mode })
      } catch (error) {
        this.applying.failed(camera, error)
      }
    })
  }

  /** The newest picture as JPEG. */
  async still(id: number, quality: number): Promise<Still> {
    const camera = this.camera(id)
    if (camera.live?.state !== 'streaming') throw new CameraNotConnected(id)
    const { result, binary } = await ask(id, () => this.media.snapshot(id, quality))
    return { jpeg: binary, width: result.width, height: result.height, timestampMs: result.timestamp_ms }
  }

  async stats(): Promise<HelperStats> {
    return ask(this.activeId, () => this.media.call('stats.get', {}))
  }

  async statsOf(id: number): Promise<CameraStats | null> {
    return (await this.stats()).cameras.find((camera) => camera.id === id) ?? null
  }

  private camera(id: number): Camera {
    const camera = this.cameras[id]
    if (!camera) throw new NotFound(`camera ${id}`)
    return camera
  }

  private forgetStates(): void {
    this.applying.stop()
    for (const camera of this.cameras) {
      camera.captureFps = null
      if (camera.live) this.stateChanged({ ...camera.live, state: 'starting', reason: 'the media helper restarts' })
    }
  }

  private stateChanged(state: CameraState): void {
    const camera = this.cameras[state.id]
    if (!camera) return
    const before = camera.live?.state
    camera.live = state
    if (before === state.state) return
    if (state.state === 'streaming') void this.sound.follow(camera)
    this.log.info({ camera: state.id, state: state.state, reason: state.reason, device: state.device }, 'camera state')
    this.bus.publish('camera', state.state === 'streaming' ? 'connected' : state.state, {
      camera: state.id,
      device: camera.device,
      reason: state.reason,
    })
  }

  private save(camera: Camera, settings: CameraSettings, modeChosen: boolean): void {
    this.table?.put(camera.id, { spec: camera.spec.text, settings, mode_chosen: modeChosen })
    this.take(camera, settings, modeChosen)
  }

  /** What is stored already holds from here on. */
  private take(camera: Camera, settings: CameraSettings, modeChosen: boolean): void {
    const before = camera.settings
    camera.settings = settings
    camera.modeChosen = modeChosen
    if (camera.id !== this.activeId) return
    const { brightness, contrast, saturation, fps } = settings
    const values: Record<string, unknown> = { brightness, contrast, saturation, fps, resolution: formatResolution(settings) }
    const old: Record<string, unknown> = { ...before, resolution: formatResolution(before) }
    for (const [key, value] of Object.entries(values)) if (old[key] !== value) this.bus.emit('state', { key, value })
  }
}
