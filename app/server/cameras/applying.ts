/** Makes the helper do what a camera is set to. What it could not be brought to is tried again, ever less often, for as long as it runs. */
import { backoff } from '../backoff.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import { HELPER_ERROR, HelperDown, HelperError, type MediaSupervisor } from '../media/index.ts'
import { type Camera, inTurn, streamsOf } from './camera.ts'
import type { Sound } from './sound.ts'

const FIRST_RETRY_MS = 1000
const LAST_RETRY_MS = 60_000

export class Applying {
  private readonly timers = new Map<Camera, NodeJS.Timeout>()

  constructor(
    private readonly media: MediaSupervisor,
    private readonly sound: Sound,
    private readonly log: Logger,
    /** The camera that is meant where none is named. */
    private readonly active: () => number,
    private readonly firstRetryMs = FIRST_RETRY_MS,
  ) {}

  /** To be called in the camera's turn. Whether the helper has the camera already makes no difference. */
  async apply(camera: Camera): Promise<void> {
    camera.audio = this.sound.sourceOf(camera)
    const { id, spec, audio, controls, settings, captureFps } = camera
    const mode = { ...camera.mode, ...(captureFps === null ? {} : { fps: captureFps }) }
    const streams = streamsOf(settings)
    try {
      await this.media.call('camera.add', { id, source: spec.source, audio, mode, controls, streams })
    } catch (error) {
      if (!isRefusal(error, HELPER_ERROR.exists)) throw error
      await this.media.call('camera.configure', { id, audio, mode, streams })
      await this.media.call('camera.set_controls', { id, ...controls })
    }
    // The helper selects whichever camera comes first.
    if (id === this.active()) await this.media.call('camera.select', { id })
  }

  /** To be called in the camera's turn. One that the helper never got is gone as well. */
  async remove({ id }: Camera): Promise<void> {
    try {
      await this.media.call('camera.remove', { id })
    } catch (error) {
      if (!isRefusal(error, HELPER_ERROR.not_found)) throw error
    }
  }

  /** In its turn. Never throws. */
  async ensure(camera: Camera, attempt = 1): Promise<void> {
    this.forget(camera)
    try {
      await inTurn(camera, async () => {
        if (camera.settings.enabled) return this.apply(camera)
        await this.remove(camera)
        camera.live = null
      })
    } catch (error) {
      this.failed(camera, error, attempt)
    }
  }

  /** What the camera is set to does not act, or nobody knows whether it does. */
  failed(camera: Camera, error: unknown, attempt = 1): void {
    // A helper that comes back begins with what is set.
    if (error instanceof HelperDown) return
    this.forget(camera)
    const retry_ms = backoff(attempt, this.firstRetryMs, LAST_RETRY_MS)
    this.log.error({ camera: camera.id, error: errorText(error), retry_ms }, 'a camera does not do yet what is set')
    this.timers.set(
      camera,
      setTimeout(() => void this.ensure(camera, attempt + 1), retry_ms),
    )
  }

  stop(): void {
    for (const camera of this.timers.keys()) this.forget(camera)
  }

  private forget(camera: Camera): void {
    clearTimeout(this.timers.get(camera))
    this.timers.delete(camera)
  }
}

function isRefusal(error: unknown, code: number): boolean {
  return error instanceof HelperError && error.code === code
}
