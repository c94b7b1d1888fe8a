/** Keeps the past of the cameras in the helper's memory, where the configuration or a trigger wants it, and again after its restarts. */
import type { Bus, ServerEvent } from '../bus.ts'
import type { Cameras } from '../cameras/index.ts'
import type { Component } from '../component.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { CameraState, MediaSupervisor } from '../media/index.ts'

const STREAM = 'stream1'

export class PreRoll implements Component {
  /** Bytes by camera, as the helper has been told. */
  private readonly applied = new Map<number, number>()
  private turn: Promise<void> = Promise.resolve()
  private readonly onChange = () => this.applyAll()
  private readonly onState = ({ key }: { key: string }) => {
    if (key === 'recordingBufferSize') this.applyAll()
  }
  private readonly onDown = () => this.applied.clear()
  private readonly onCamera = ({ id, state }: CameraState) => {
    if (state === 'streaming') this.apply(id)
  }
  private readonly onEvent = ({ category, type, data }: ServerEvent) => {
    if (category === 'camera' && type === 'stopped') this.applied.delete(Number(data.camera))
  }

  constructor(
    private readonly cameras: Cameras,
    private readonly media: MediaSupervisor,
    private readonly bus: Bus,
    private readonly log: Logger,
    /** Whether the past of this camera is kept. */
    private readonly wanted: (camera: number) => boolean,
    private readonly bufferBytes: () => number,
  ) {}

  start(): void {
    this.media.on('down', this.onDown).on('camera.state', this.onCamera)
    this.bus.on('state', this.onState).on('config-changed', this.onChange).on('pre-roll-changed', this.onChange)
    this.bus.on('event', this.onEvent)
    this.applyAll()
  }

  async stop(): Promise<void> {
    this.media.off('down', this.onDown).off('camera.state', this.onCamera)
    this.bus.off('state', this.onState).off('config-changed', this.onChange).off('pre-roll-changed', this.onChange)
    this.bus.off('event', this.onEvent)
    await this.turn
  }

  private applyAll(): void {
    for (const { id } of this.cameras.list()) this.apply(id)
  }

  private apply(id: number): void {
    this.turn = this.turn.then(() => this.tell(id))
  }

  private async tell(id: number): Promise<void> {
    const bytes = this.wanted(id) ? this.bufferBytes() : 0
    if (bytes === (this.applied.get(id) ?? 0) || !this.cameras.view(id).settings.enabled) return
    try {
      await this.media.call('camera.set_buffer', { id, stream: STREAM, bytes })
      this.applied.set(id, bytes)
    } catch (error) {
      // Tried again when the camera delivers.
      this.log.warn({ camera: id, error: errorText(error) }, 'the past is not kept')
    }
  }
}
