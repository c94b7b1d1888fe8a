/** The device's storage: users see `/media/data/…`, the files lie below the data folder. */
import { mkdirSync } from 'node:fs'
import { join, posix } from 'node:path'
import { type DiskSpace, diskSpace, Recent } from '../platform/index.ts'
import { DEVICE_ROOT } from './paths.ts'

export class DeviceStorage {
  private readonly recent = new Recent(() => this.space())

  constructor(
    /** Host folder behind `/media/data`. */
    private readonly root: string,
  ) {}

  get hostRoot(): string {
    return this.root
  }

  /** Makes sure that the root is there. */
  start(): void {
    mkdirSync(this.root, { recursive: true, mode: 0o750 })
  }

  /** The host path of a device path that this server made itself; anything outside the root is a programming error. */
  hostPath(devicePath: string): string {
    const normal = posix.normalize(devicePath)
    if (!normal.startsWith(`${DEVICE_ROOT}/`)) throw new Error(`${devicePath} is outside the device storage`)
    return join(this.root, normal.slice(DEVICE_ROOT.length))
  }

  devicePath(...parts: string[]): string {
    return posix.join(DEVICE_ROOT, ...parts)
  }

  /** Exact, for decisions. Null when the storage cannot be asked: it was pulled out, or its file system has failed. */
  space(): DiskSpace | null {
    try {
      return diskSpace(this.root)
    } catch {
      return null
    }
  }

  /** As of the last second, for showing. */
  recentSpace(): DiskSpace | null {
    return this.recent.get()
  }
}
