/**
 * The device's storage: users see `/media/data/…`, whose files lie below the data folder, and further media as `/media/<name>/…`, which lie
 * where the system mounts them.
 */
import { mkdirSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import { type DiskSpace, diskSpace, Recent } from '../platform/index.ts'
import { DEVICE_ROOT as DATA_VOLUME } from './paths.ts'

const MEDIA_ROOT = '/media'

export class DeviceStorage {
  /** Device path of the folder that the next recording goes to. */
  recordings = `${DATA_VOLUME}/recordings`
  private readonly recent = new Recent(() => this.space())
  /** Volumes that must be a file system of their own: without it, the folder is an empty mount point. */
  private readonly separate = new Set<string>()

  constructor(
    /** Host folder behind `/media/data`. */
    private readonly root: string,
    /** Host folder in which the system mounts the other media. */
    private readonly mediaRoot = '/media',
  ) {}

  /** Host folder behind `/media/data`. */
  get hostRoot(): string {
    return this.root
  }

  /** Makes sure that the root is there. */
  start(): void {
    mkdirSync(this.root, { recursive: true, mode: 0o750 })
  }

  /** The host path of a device path that this server made or has checked; anything outside the media is a programming error. */
  hostPath(devicePath: string): string {
    const normal = posix.normalize(devicePath)
    if (!normal.startsWith(`${MEDIA_ROOT}/`)) throw new Error(`${devicePath} is outside the device storage`)
    if (normal === DATA_VOLUME || normal.startsWith(`${DATA_VOLUME}/`)) return join(this.root, normal.slice(DATA_VOLUME.length))
    return join(this.mediaRoot, normal.slice(MEDIA_ROOT.length))
  }

  devicePath(...parts: string[]): string {
    return posix.join(DATA_VOLUME, ...parts)
  }

  /** `/media/<name>` of a device path. */
  volumeOf(devicePath: string): string {
    return posix.normalize(devicePath).split('/').slice(0, 3).join('/')
  }

  /** Without its file system, such a volume counts as pulled out. */
  mustBeSeparate(volume: string, yes: boolean): void {
    if (yes) this.separate.add(volume)
    else this.separate.delete(volume)
  }

  /** Whether the volume is a file system of its own now; throws when it is not there at all. */
  isSeparate(volume: string): boolean {
    const folder = this.hostPath(volume)
    return statSync(folder).dev !== statSync(join(folder, '..')).dev
  }

  /** Exact, for decisions. Null when the medium cannot be asked: it was pulled out, or its file system has failed. */
  space(devicePath: string = DATA_VOLUME): DiskSpace | null {
    const volume = this.volumeOf(devicePath)
    try {
      if (this.separate.has(volume) && !this.isSeparate(volume)) return null
      return diskSpace(this.hostPath(volume))
    } catch {
      return null
    }
  }

  /** As of the last second, for showing. */
  recentSpace(): DiskSpace | null {
    return this.recent.get()
  }
}
