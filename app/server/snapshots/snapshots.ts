/** Stills that are kept: taken from the newest frame and written to the device storage. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { currentActor } from '../actor.ts'
import type { Bus } from '../bus.ts'
import type { Cameras, Still } from '../cameras/index.ts'
import { ApiError, InvalidRequest } from '../errors.ts'
import { type DeviceStorage, dayFolder, freeName, sanitiseStem, timeStem } from '../files/index.ts'
import { ensureFolder, writeFileAtomic } from '../platform/index.ts'
import type { Catalogue } from '../recording/index.ts'

export const DEFAULT_QUALITY = 85

export interface SnapshotRequest {
  readonly camera?: number
  readonly filename?: string
  readonly quality?: number
  /** Puts the time of the picture behind the name. */
  readonly addTimestamp?: boolean
}

export interface SnapshotResult {
  readonly filename: string
  /** Device path. */
  readonly path: string
  readonly size: number
  readonly timestamp: string
}

export class Snapshots {
  constructor(
    private readonly cameras: Cameras,
    private readonly storage: DeviceStorage,
    private readonly catalogue: Catalogue,
    private readonly bus: Bus,
  ) {}

  async take(request: SnapshotRequest): Promise<SnapshotResult> {
    const { filename } = request
    if (filename !== undefined && /\.[A-Za-z0-9]{1,5}$/.test(filename) && !/\.jpe?g$/i.test(filename)) {
      throw new ApiError('INVALID_FORMAT', 'Stills are written as .jpg', 'filename')
    }
    const asked = filename === undefined ? undefined : sanitiseStem(filename)
    if (asked === null) throw new InvalidRequest('body.filename', 'The filename has no usable character')
    const camera = this.cameras.view(request.camera).id
    const still = await this.cameras.still(camera, request.quality ?? DEFAULT_QUALITY)
    const taken = new Date(still.timestampMs)
    const stem =
      asked === undefined ? `snapshot_${timeStem(taken)}` : request.addTimestamp ? `${asked}_${timeStem(taken)}` : asked

    const folder = this.storage.devicePath('snapshots', dayFolder(taken))
    const hostFolder = this.storage.hostPath(folder)
    // From here to the rename nothing waits: two stills at once cannot take the same name.
    ensureFolder(hostFolder)
    const name = freeName(hostFolder, `${stem}.jpg`)
    const file = join(hostFolder, name)
    writeStill(file, still.jpeg)
    const result = { filename: name, path: join(folder, name), size: still.jpeg.length, timestamp: taken.toISOString() }
    try {
      this.enter(camera, still, result)
    } catch (error) {
      rmSync(file, { force: true })
      throw error
    }
    this.bus.publish('camera', 'snapshot', { camera, ...result })
    return result
  }

  private enter(camera: number, { width, height, timestampMs }: Still, { filename, path, size }: SnapshotResult): void {
    this.catalogue.addMedia({
      media_type: 'image',
      encoding: 'jpg',
      filename,
      path,
      size,
      camera,
      timestamp_start: timestampMs,
      resolution: `${width}x${height}`,
      created_by: currentActor()?.username ?? null,
    })
  }
}

function writeStill(path: string, jpeg: Buffer): void {
  try {
    writeFileAtomic(path, jpeg, 0o640)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    throw new ApiError('INSUFFICIENT_STORAGE', 'The disk is full', path)
  }
}
