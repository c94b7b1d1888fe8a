/** Stills of finished recordings: made by the helper, a few at a time, and the last ones kept. */
import { ApiError } from '../errors.ts'
import type { DeviceStorage } from '../files/index.ts'
import { HELPER_ERROR, HelperDown, HelperError, type MediaSupervisor } from '../media/index.ts'
import type { RecordingRow } from './row.ts'

const KEPT = 64
const AT_ONCE = 3
const MOST_WAITING = 32
const QUALITY = 80
/** Where nothing is said: a little behind the start, which often shows nothing yet. */
const USUAL_POSITION_MS = 2000

export class Thumbnails {
  /** In the order of their last use. */
  private readonly stills = new Map<string, Promise<Buffer>>()
  private running = 0
  private readonly waiting: (() => void)[] = []

  constructor(
    private readonly media: MediaSupervisor,
    private readonly storage: DeviceStorage,
  ) {}

  /** JPEG of the key frame at or before `positionMs`, at most `width` wide. */
  take(row: RecordingRow, width: number, positionMs = Math.min(USUAL_POSITION_MS, row.duration / 2)): Promise<Buffer> {
    const { path, position } = placeOf(row, positionMs)
    const key = `${row.id} ${path} ${position} ${width}`
    const known = this.stills.get(key)
    if (known) {
      this.stills.delete(key)
      this.stills.set(key, known)
      return known
    }
    const made = this.inTurn(() => this.make(path, position, width))
    this.stills.set(key, made)
    made.catch(() => this.stills.delete(key))
    for (const oldest of this.stills.keys()) {
      if (this.stills.size <= KEPT) break
      this.stills.delete(oldest)
    }
    return made
  }

  private async make(path: string, position_ms: number, width: number): Promise<Buffer> {
    try {
      const request = { path: this.storage.hostPath(path), position_ms, width, quality: QUALITY }
      return (await this.media.thumbnail(request)).binary
    } catch (error) {
      if (error instanceof HelperError && error.code === HELPER_ERROR.unsupported) {
        throw new ApiError('INVALID_FORMAT', `No picture of this recording can be shown: ${error.message}`)
      }
      if (error instanceof HelperDown || (error instanceof HelperError && error.code === HELPER_ERROR.busy)) {
        throw new ApiError('SERVICE_UNAVAILABLE', 'The media helper is busy', '', { 'Retry-After': '1' })
      }
      throw error
    }
  }

  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.running >= AT_ONCE) {
      if (this.waiting.length >= MOST_WAITING) throw new ApiError('SERVICE_UNAVAILABLE', 'Too many stills are asked for')
      await new Promise<void>((resolve) => this.waiting.push(resolve))
    } else {
      this.running += 1
    }
    try {
      return await work()
    } finally {
      const next = this.waiting.shift()
      if (next) next()
      else this.running -= 1
    }
  }
}

/** The file in which a position of the recording lies, and where in it. */
export function placeOf(row: Pick<RecordingRow, 'parts'>, positionMs: number): { path: string; position: number } {
  let begin = 0
  let place = { path: '', position: 0 }
  for (const { path, duration } of row.parts) {
    if (place.path !== '' && positionMs < begin) break
    place = { path, position: Math.round(Math.max(0, Math.min(positionMs - begin, duration))) }
    begin += duration
  }
  return place
}
