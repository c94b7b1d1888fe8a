/** Where recordings go and where their copies go: the setting `recordingStorage`, checked before it acts. */
import { realpathSync } from 'node:fs'
import { mkdir, open, realpath, rm } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { ApiError, errorText, UnsupportedSetting } from '../errors.ts'
import { type DeviceStorage, isReserved } from '../files/index.ts'
import type { Logger } from '../log.ts'
import type { Store } from '../store/index.ts'

export interface RecordingStorage {
  readonly primary: string
  /** Path on a second medium; empty: no copies. */
  readonly backup: string
  /** Path on a mounted network file system; empty: no copies. */
  readonly network: string
}

export const COPY_PLACES = ['backup', 'network'] as const
export type CopyPlace = (typeof COPY_PLACES)[number]

export const USUAL_STORAGE: RecordingStorage = {
  primary: '/media/data/recordings',
  backup: '/media/backup/recordings',
  network: '',
}

const KEY = 'recordingStorage'
const DATA_VOLUME = '/media/data'
const MOUNT_NOTE = 'media_data_is_mount'
const MAX_DEPTH = 16

export class Places implements Component {
  private current: RecordingStorage = USUAL_STORAGE
  private readonly onState = ({ key, value }: { key: string; value: unknown }) => {
    if (key === KEY) this.use(value as RecordingStorage)
  }

  constructor(
    private readonly store: Store,
    private readonly storage: DeviceStorage,
    private readonly bus: Bus,
    private readonly log: Logger,
    private readonly recording: () => boolean,
  ) {}

  start(): void {
    this.current = this.usable(this.store.table<string, RecordingStorage>('settings').get(KEY) ?? USUAL_STORAGE)
    this.storage.recordings = this.current.primary
    this.watchMount(false)
    if (!this.storage.isPresent(this.current.primary)) {
      this.log.error({ primary: this.current.primary }, 'the storage medium of the recordings is not there')
      this.bus.publish('alert', 'storage_lost', { path: this.current.primary })
    }
    this.bus.on('state', this.onState)
  }

  stop(): void {
    this.bus.off('state', this.onState)
  }

  /** Device path of the place for copies; undefined: there is none. */
  copyPlace(place: CopyPlace): string | undefined {
    return this.current[place] || undefined
  }

  /** Throws what is wrong with `next`; makes sure that recordings can be written to a new primary place. */
  async check(next: RecordingStorage): Promise<void> {
    const changed = (['primary', ...COPY_PLACES] as const).filter((place) => next[place] !== this.current[place])
    if (changed.length === 0) return
    if (this.recording())
      throw new ApiError('RECORDING_IN_PROGRESS', 'The storage of recordings cannot change during one', 'recordingStorage')
    for (const place of changed) this.checkPath(place, next[place])
    for (const place of COPY_PLACES) {
      if (next[place] !== '' && overlap(next[place], next.primary)) refuse(place, 'Copies cannot lie among the recordings')
    }
    if (next.backup !== '' && next.network !== '' && overlap(next.backup, next.network))
      refuse('network', 'Both copies would lie in one place')
    if (changed.includes('primary')) await this.checkWritable(next.primary)
  }

  private use(next: RecordingStorage): void {
    const moved = next.primary !== this.current.primary
    this.current = this.usable(next)
    this.storage.recordings = this.current.primary
    if (moved) this.watchMount(true)
  }

  /** Where `/media/data` was a medium of its own, its folder without the medium is no place to record to, until somebody says so. */
  private watchMount(anew: boolean): void {
    const meta = this.store.table<string, boolean>('meta')
    const required = this.storage.isMounted(DATA_VOLUME) || (!anew && meta.get(MOUNT_NOTE) === true)
    this.storage.requireMount(required)
    if (meta.get(MOUNT_NOTE) !== required) this.store.urgent(() => meta.put(MOUNT_NOTE, required))
  }

  /** What was stored past the check, by an older release or by hand, must not lead anywhere else. */
  private usable(stored: RecordingStorage): RecordingStorage {
    const value = { ...stored }
    for (const place of ['primary', ...COPY_PLACES] as const) {
      try {
        this.checkPath(place, value[place])
      } catch (error) {
        this.log.error({ place, path: value[place], error: errorText(error) }, 'a storage place cannot be used')
        value[place] = place === 'primary' ? USUAL_STORAGE.primary : ''
      }
    }
    return value
  }

  private checkPath(place: keyof RecordingStorage, path: string): void {
    if (path === '' && place !== 'primary') return
    if (path.includes('://'))
      refuse(place, 'This device does not mount network addresses itself; name the folder where it is mounted')
    const [root, media, volume, ...folders] = path.split('/')
    if (root !== '' || media !== 'media' || !volume) refuse(place, 'The path must start with /media/<medium>')
    const parts = [volume as string, ...folders]
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not come in
    if (parts.some((part) => part === '' || part === '.' || part === '..' || /[\0-\x1f\x7f\\]/.test(part)))
      refuse(place, 'The path has an empty, dotted or unreadable part')
    if (parts.length > MAX_DEPTH || Buffer.byteLength(path) > 1024) refuse(place, 'The path is too long')
    if (volume === 'data' && (folders[0] === undefined || isReserved(folders[0])))
      refuse(place, 'Name a folder below /media/data')
  }

  private async checkWritable(primary: string): Promise<void> {
    // A mount that is missing now may have been given up on purpose: the user names the place anew.
    if (this.storage.volumeOf(primary) !== DATA_VOLUME && !this.storage.isPresent(primary))
      refuse('primary', 'No such medium is mounted')
    const folder = this.storage.hostPath(primary)
    try {
      await containedFolder(this.storage.hostPath(this.storage.volumeOf(primary)), folder)
      const probe = join(folder, `.probe-${process.pid}`)
      const file = await open(probe, 'wx', 0o600)
      await file.close()
      await rm(probe)
    } catch (error) {
      if (error instanceof ApiError) throw error
      refuse('primary', `Recordings cannot be written there: ${(error as NodeJS.ErrnoException).code ?? errorText(error)}`)
    }
  }
}

/** Makes `folder` below `root`, which must be there; no symbolic link may lead out of it. */
export async function containedFolder(root: string, folder: string): Promise<void> {
  const realRoot = await realpath(root)
  const within = (path: string) => path === realRoot || path.startsWith(`${realRoot}/`)
  let existing = folder
  while (existing !== root && !exists(existing)) existing = dirname(existing)
  if (!within(await realpath(existing)))
    throw new UnsupportedSetting('recordingStorage.primary', 'A link leads out of the medium')
  await mkdir(folder, { recursive: true, mode: 0o750 })
}

function exists(path: string): boolean {
  try {
    realpathSync(path)
    return true
  } catch {
    return false
  }
}

function overlap(a: string, b: string): boolean {
  const inside = (inner: string, outer: string) => `${posix.normalize(inner)}/`.startsWith(`${posix.normalize(outer)}/`)
  return inside(a, b) || inside(b, a)
}

function refuse(place: keyof RecordingStorage, why: string): never {
  throw new UnsupportedSetting(`recordingStorage.${place}`, why)
}
