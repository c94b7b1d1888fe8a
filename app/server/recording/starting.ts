/** From a plan to a running recording: row first, then the file. Whatever happens, no file is without a row. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Cameras, helperToApi } from '../cameras/index.ts'
import { errorText } from '../errors.ts'
import { dayFolder } from '../files/index.ts'
import type { Logger } from '../log.ts'
import { HelperError, HelperTimeout, type MediaSupervisor, type RecorderStart } from '../media/index.ts'
import { ensureFolder } from '../platform/index.ts'
import type { Catalogue } from './catalogue.ts'
import type { Insistence } from './insistence.ts'
import type { RecorderOptions } from './options.ts'
import { freeRecordingName } from './parts.ts'
import type { RecordingPlan } from './plan.ts'
import type { NewRow } from './row.ts'
import { Active, type Origin, type Slot } from './slots.ts'

const STREAM = 'stream1'

export class Starting {
  /** Paths of recordings that are about to begin, over all cameras. */
  private readonly claimed = new Set<string>()

  constructor(
    private readonly cameras: Cameras,
    private readonly media: MediaSupervisor,
    private readonly catalogue: Catalogue,
    private readonly log: Logger,
    private readonly options: RecorderOptions,
    private readonly insistence: Insistence,
  ) {}

  /** Fills the slot; throws, and leaves neither row nor file, when the helper refuses. */
  async begin(slot: Slot, plan: RecordingPlan, origin: Origin): Promise<Active> {
    const start = this.options.clock.now()
    const place = this.options.folder()
    const day = dayFolder(start)
    const hostFolder = join(place.hostPath, day)
    ensureFolder(hostFolder)
    const filename = freeRecordingName(hostFolder, plan.stem, plan.container, this.claimed)
    const hostPath = join(hostFolder, filename)
    this.claimed.add(hostPath)
    try {
      const row = this.catalogue.create(this.newRow(plan, origin, start, filename, join(place.devicePath, day, filename)))
      return await this.launch(slot, new Active(row, plan, origin, hostPath))
    } finally {
      this.claimed.delete(hostPath)
    }
  }

  private async launch(slot: Slot, active: Active): Promise<Active> {
    const { row, plan, hostPath } = active
    slot.active = active
    try {
      if (plan.captureFps !== undefined) await this.cameras.captureAt(plan.camera, plan.captureFps)
      await this.media.call('recorder.start', this.request(active))
      return active
    } catch (error) {
      slot.active = null
      // It may have begun all the same, or begin yet: nothing is to write into a file that is gone.
      if (error instanceof HelperTimeout) await this.giveUp(row.id)
      if (plan.captureFps !== undefined) await this.cameras.captureAsSet(plan.camera)
      this.insistence.write(row.id, () => this.catalogue.remove(row.id))
      const foreign = error instanceof HelperError && error.data.errno === 'EEXIST'
      if (!foreign) await rm(hostPath, { force: true })
      throw helperToApi(error, plan.camera)
    }
  }

  /** Answered behind the start that was not; a helper that does not answer this either is killed by its supervisor. */
  private async giveUp(id: number): Promise<void> {
    try {
      await this.media.call('recorder.stop', { id })
    } catch (error) {
      this.log.warn({ id, error: errorText(error) }, 'a start that was not answered could not be taken back')
    }
  }

  private request({ row, plan, hostPath }: Active): RecorderStart {
    const { partMaxBytes, partMaxMs } = this.options.limits()
    const queueFrames = this.options.queueFrames()
    return {
      id: row.id,
      camera: plan.camera,
      path: hostPath,
      stream: STREAM,
      container: plan.container,
      video: plan.video,
      audio: plan.audio,
      ...(plan.encode ? { encode: plan.encode } : {}),
      duration_ms: plan.durationMs,
      part_max_bytes: partMaxBytes,
      part_max_ms: partMaxMs,
      ...(plan.preRollMs > 0 ? { pre_roll_ms: plan.preRollMs } : {}),
      ...(queueFrames === undefined ? {} : { queue_frames: queueFrames }),
      ...(plan.timelapse ? { timelapse: plan.timelapse } : {}),
      ...(plan.slowMotion ? { slow_motion: plan.slowMotion } : {}),
    }
  }

  private newRow(plan: RecordingPlan, origin: Origin, start: Date, filename: string, path: string): NewRow {
    return {
      filename,
      media_type: plan.kind,
      encoding: plan.container,
      video_codec: plan.video,
      audio_codec: plan.audio,
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
      time_synced: this.options.clock.synchronised,
      boot_id: this.options.clock.bootId,
      trigger: origin.trigger,
      created_by: origin.createdBy,
    }
  }
}
