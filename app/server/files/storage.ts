/**
 * The device's storage: users see `/media/data/…`, whose files lie below the data folder, and further media as `/media/<name>/…`, which lie
 * where the system mounts them.
 */
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type DiskSpace, diskSpace, Recent } from '../platform/index.ts'
import { DEVICE_ROOT as DATA_VOLUME } from './paths.ts'

const MEDIA_ROOT = '/media'
/** A plain folder below the media root that holds this file is a medium too. */
const MARKER = '.camera-storage'
const REACH_MS = 3000

export class DeviceStorage {
  /** Device path of the folder that the next recording goes to. */
  recordings = `${DATA_VOLUME}/recordings`
  private readonly recent = new Recent(() => this.space())
  private mountRequired = false
  private readonly asked = new Map<string, Promise<boolean>>()

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

  /** From now on `/media/data` counts as pulled out when it is no file system of its own. */
  requireMount(yes: boolean): void {
    this.mountRequired = yes
  }

  /** Whether the volume is a file system of its own now. */
  isMounted(volume: string): boolean {
    try {
      const folder = this.hostPath(volume)
      return statSync(folder).dev !== statSync(join(folder, '..')).dev
    } catch {
      return false
    }
  }

  /** False: the medium is not there, and its folder, if any, is an empty mount point that nothing may be written into. */
  isPresent(devicePath: string): boolean {
    const volume = this.volumeOf(devicePath)
    if (volume === DATA_VOLUME) return !this.mountRequired || this.isMounted(volume)
    return this.isMounted(volume) || existsSync(join(this.hostPath(volume), MARKER))
  }

  /** Like `isPresent`, for media that may hang: a network file system whose server is gone blocks whoever asks, so only one does. */
  async reachable(devicePath: string): Promise<boolean> {
    const volume = this.volumeOf(devicePath)
    let answer = this.asked.get(volume)
    if (!answer) {
      answer = this.ask(volume).finally(() => this.asked.delete(volume))
      this.asked.set(volume, answer)
    }
    return Promise.race([answer, delay(REACH_MS, false, { ref: false })])
  }

  /** Exact, for decisions. Null when the medium cannot be asked: it was pulled out, or its file system has failed. */
  space(devicePath: string = DATA_VOLUME): DiskSpace | null {
    try {
      return this.isPresent(devicePath) ? diskSpace(this.hostPath(this.volumeOf(devicePath))) : null
    } catch {
      return null
    }
  }

  private async ask(volume: string): Promise<boolean> {
    const folder = this.hostPath(volume)
    try {
      const [own, above] = await Promise.all([stat(folder), stat(join(folder, '..'))])
      if (volume === DATA_VOLUME) return !this.mountRequired || own.dev !== above.dev
      if (own.dev !== above.dev) return true
      await access(join(folder, MARKER))
      return true
    } catch {
      return false
    }
  }

  /** As of the last second, for showing. */
  recentSpace(): DiskSpace | null {
    return this.recent.get()
  }
}
