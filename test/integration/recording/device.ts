/** A device with recordings, a place for copies and all that looks after them, without a camera. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { Bus, type ServerEvent } from '../../../app/server/bus.ts'
import { DeviceStorage } from '../../../app/server/files/index.ts'
import {
  Catalogue,
  Integrity,
  Places,
  type RecordingRow,
  Replication,
  StorageCare,
  USUAL_STORAGE,
} from '../../../app/server/recording/index.ts'
import { Store } from '../../../app/server/store/index.ts'
import { until } from '../../support/api.ts'
import { newRow } from '../../support/recordings.ts'
import { scratchFolder } from '../../support/scratch.ts'

export const silent = pino({ level: 'silent' })
const scratch = scratchFolder(t, 'clip')
export const clip = join(scratch, 'clip.mp4')
const picture = ['-f', 'lavfi', '-i', 'testsrc2=s=320x240:r=25:d=2', '-c:v', 'libx264', '-g', '12', '-bf', '0']
execFileSync('ffmpeg', ['-v', 'error', ...picture, '-movflags', 'frag_keyframe+empty_moov+default_base_moof', clip])
/** A whole file of two seconds. */
export const CLIP = readFileSync(clip)
export const SUM = createHash('sha256').update(CLIP).digest('hex')
export const DAY = '2026/05/04'

export class Device {
  readonly folder = mkdtempSync(join(tmpdir(), 'care-'))
  readonly media = join(this.folder, 'media-root')
  readonly backup = join(this.media, 'usb')
  store!: Store
  storage!: DeviceStorage
  catalogue!: Catalogue
  places!: Places
  replication!: Replication
  integrity!: Integrity
  care!: StorageCare
  bus!: Bus
  events: ServerEvent[] = []
  rate = 1e9
  firstRetryMs = 100
  readonly clock = { now: () => new Date(), synchronised: true, builtAt: Date.UTC(2026, 0, 1) }

  static async make(t: Test): Promise<Device> {
    const device = new Device()
    mkdirSync(device.backup, { recursive: true })
    writeFileSync(join(device.backup, '.camera-storage'), '')
    await device.start()
    t.teardown(async () => {
      await device.stop()
      rmSync(device.folder, { recursive: true })
    })
    return device
  }

  async start(): Promise<void> {
    this.bus = new Bus()
    this.bus.on('event', (event) => this.events.push(event))
    this.store = new Store(join(this.folder, 'db'), silent)
    await this.store.start()
    this.storage = new DeviceStorage(join(this.folder, 'data'), this.media)
    this.storage.start()
    this.catalogue = new Catalogue(this.store)
    const settings = this.store.table<string, unknown>('settings')
    const value = { ...USUAL_STORAGE, backup: '/media/usb/copies' }
    this.store.transaction(() => settings.put('recordingStorage', value))
    this.places = new Places(this.store, this.storage, this.bus, silent, () => false)
    this.places.start()
    const rate = () => this.rate
    this.integrity = new Integrity(this.catalogue, this.storage, this.bus, silent, rate)
    this.integrity.start()
    const options = { rate, now: () => new Date(), firstRetryMs: this.firstRetryMs }
    this.replication = new Replication(this.store, this.catalogue, this.storage, this.places, this.bus, silent, options)
    this.replication.start()
    this.care = new StorageCare(this.catalogue, this.storage, this.places, this.replication, this.clock, rate)
  }

  async stop(): Promise<void> {
    await this.replication.stop()
    await this.integrity.stop()
    this.places.stop()
    await this.store.stop()
  }

  path(name: string): string {
    return this.storage.hostPath(`/media/data/recordings/${DAY}/${name}`)
  }

  copy(name: string): string {
    return join(this.backup, 'copies', DAY, name)
  }

  put(name: string): string {
    const file = this.path(name)
    mkdirSync(dirname(file), { recursive: true })
    copyFileSync(clip, file)
    return file
  }

  /** As the recorder does when it has finished. */
  record(name: string, parts = 1): RecordingRow {
    const row = this.entered(name, parts)
    this.bus.emit('recording-finished', row)
    return row
  }

  /** Of which nothing has been told. */
  entered(name: string, parts = 1): RecordingRow {
    const names = Array.from({ length: parts }, (_, n) => (n === 0 ? name : name.replace('.', `.part${n + 1}.`)))
    for (const part of names) this.put(part)
    const path = (part: string) => `/media/data/recordings/${DAY}/${part}`
    return this.catalogue.create(
      newRow(name, {
        path: path(name),
        timestamp_start: Date.UTC(2026, 4, 4),
        duration: 2000 * parts,
        size: CLIP.length * parts,
        parts: names.map((part) => ({ filename: part, path: path(part), duration: 2000, size: CLIP.length, sha256: null })),
      }),
    )
  }

  copied(id: number): boolean {
    return this.replication.copyOf('backup', id) !== undefined
  }

  verify(repair = false) {
    const work = { signal: new AbortController().signal, checkIntegrity: true, repair, progress: () => undefined }
    return this.care.verify(work)
  }

  recover(source: 'primary' | 'backup' | 'network', from = 0, to = Date.now() + 1e9) {
    const work = { signal: new AbortController().signal, source, from, to, progress: () => undefined }
    return this.care.recover(work)
  }
}

export const copiedOf = (device: Device, { id }: RecordingRow) => until(() => device.copied(id), Boolean, `the copy of ${id}`)
