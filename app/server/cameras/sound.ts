/** Where the cameras' sound comes from: a webcam's microphone may come later than its picture, and a change that fails is tried again. */
import { isDeepStrictEqual } from 'node:util'
import { backoff } from '../backoff.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { AudioSource, MediaSupervisor } from '../media/index.ts'
import { type Camera, inTurn } from './camera.ts'

/** The ALSA device that belongs to a video device, or null. */
export type FindSound = (videoDevice: string) => string | null

const LOOK_MS = 2000
const LAST_RETRY_MS = 60_000

/** A change that failed. */
interface Trouble {
  readonly failures: number
  /** Of `performance.now()`. */
  readonly notBefore: number
  readonly error: string
}

export class Sound {
  private timer: NodeJS.Timeout | undefined
  /** They have a turn, or wait for it. */
  private readonly following = new Set<Camera>()
  private readonly troubles = new Map<Camera, Trouble>()

  constructor(
    private readonly media: MediaSupervisor,
    private readonly findSound: FindSound,
    private readonly log: Logger,
    private readonly lookMs = LOOK_MS,
  ) {}

  start(cameras: readonly Camera[]): void {
    for (const camera of cameras) camera.audio = this.sourceOf(camera)
    this.timer = setInterval(() => this.look(cameras), this.lookMs)
  }

  stop(): void {
    clearInterval(this.timer)
  }

  sourceOf({ spec: { source, audio } }: Camera): AudioSource | null {
    if (audio === 'none') return null
    if (audio !== 'auto') return audio
    const device = source.type === 'v4l2' ? this.findSound(source.device) : null
    return device === null ? null : { type: 'alsa', device }
  }

  /** What is there now becomes its sound, be it nothing: to be called when its picture has just come. Never throws. */
  follow(camera: Camera): Promise<void> {
    this.following.add(camera)
    return inTurn(camera, () => this.change(camera))
      .then(
        () => void this.troubles.delete(camera),
        (error: unknown) => this.failed(camera, errorText(error)),
      )
      .finally(() => this.following.delete(camera))
  }

  private async change(camera: Camera): Promise<void> {
    const { id, settings } = camera
    const audio = this.sourceOf(camera)
    if (!settings.enabled || isDeepStrictEqual(audio, camera.audio)) return
    await this.media.call('camera.configure', { id, audio })
    camera.audio = audio
    this.log.info({ camera: id, audio }, 'sound source')
  }

  private failed(camera: Camera, error: string): void {
    const before = this.troubles.get(camera)
    const failures = (before?.failures ?? 0) + 1
    const notBefore = performance.now() + backoff(failures, this.lookMs, LAST_RETRY_MS)
    this.troubles.set(camera, { failures, notBefore, error })
    if (error !== before?.error) this.log.warn({ camera: camera.id, error }, 'sound source not changed yet')
  }

  /** One that is gone for a moment is kept. */
  private look(cameras: readonly Camera[]): void {
    for (const camera of cameras) {
      if (camera.live?.state !== 'streaming' || !camera.settings.enabled) continue
      if (this.following.has(camera) || performance.now() < (this.troubles.get(camera)?.notBefore ?? 0)) continue
      const audio = this.sourceOf(camera)
      if (audio !== null && !isDeepStrictEqual(audio, camera.audio)) void this.follow(camera)
    }
  }
}
