/** The one way in which every recording ends: judged, entered into the catalogue, told to everybody. */
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { actingAs } from '../actor.ts'
import type { Bus } from '../bus.ts'
import { errorText } from '../errors.ts'
import type { DeviceStorage } from '../files/index.ts'
import type { Logger } from '../log.ts'
import { syncFolder } from '../platform/index.ts'
import type { Catalogue } from './catalogue.ts'
import { judgeRecording, type RecordingVerdict } from './finish.ts'
import type { Insistence } from './insistence.ts'
import { countParts, partName } from './parts.ts'
import type { RecordingRow } from './row.ts'
import type { Active, EndReason } from './slots.ts'

export class Finishing {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly storage: DeviceStorage,
    private readonly bus: Bus,
    private readonly log: Logger,
    private readonly insistence: Insistence,
  ) {}

  /** Judges what an earlier process left unfinished. */
  async recover(): Promise<void> {
    for (const row of this.catalogue.inState('recording')) {
      // Judging cuts a torn tail off, which counts as writing.
      const written = await this.lastWritten(row)
      const verdict = await this.judge(row)
      const judged = this.enter(row, verdict, endOfInterrupted(row, verdict, written))
      const { state, durationMs, sizeBytes, parts } = verdict
      this.log.warn({ id: row.id, state, durationMs, sizeBytes, parts: parts.length }, 'interrupted recording recovered')
      this.announce(judged, () => this.publish('recovered', judged, { state }))
    }
  }

  /** Both figures are of real time. */
  async finish(
    active: Active,
    reason: EndReason,
    { recordedMs, pausedMs }: { readonly recordedMs: number; readonly pausedMs: number },
  ): Promise<RecordingRow> {
    // The start may have been corrected meanwhile: the clock was set.
    const known = this.catalogue.get(active.row.id) ?? active.row
    const verdict = await this.judge(known)
    const took = active.plan.kind === 'video' ? verdict.durationMs : Math.round(recordedMs)
    const row = this.enter(known, verdict, known.timestamp_start + took + Math.round(pausedMs))
    const { state, durationMs: duration_ms, sizeBytes: size, parts } = verdict
    this.log.info({ id: row.id, reason, state, duration_ms, size, parts: parts.length }, 'recording finished')
    const tell = () => this.publish('stopped', row, { reason, state, duration_ms, size, parts: parts.length })
    this.announce(row, () => (active.stoppedBy ? actingAs(active.stoppedBy, tell) : tell()))
    return row
  }

  /** Never throws: it is over, whatever those who hear of it can make of that. */
  private announce(row: RecordingRow, tell: () => void): void {
    for (const say of [tell, () => this.bus.emit('recording-finished', row)]) {
      try {
        say()
      } catch (error) {
        this.log.error({ id: row.id, error: errorText(error) }, 'the end of a recording could not be told')
      }
    }
  }

  publish(type: string, row: RecordingRow, more: Record<string, unknown>): void {
    this.bus.publish('recording', type, { id: row.id, camera: row.camera, filename: row.filename, path: row.path, ...more })
  }

  /** Never throws: a file that cannot be read is a defect one, and one bad file must not stop the server. */
  private async judge(row: RecordingRow): Promise<RecordingVerdict> {
    try {
      const hostPath = this.storage.hostPath(row.path)
      const verdict = await judgeRecording(row, hostPath)
      if (verdict.state === 'ready') syncFolder(dirname(hostPath))
      return verdict
    } catch (error) {
      this.log.error({ id: row.id, error: errorText(error) }, 'recording cannot be read back')
      return { state: 'defect', durationMs: 0, sizeBytes: 0, parts: row.parts }
    }
  }

  /** When the last part that is on the disk was written to, in ms; 0: unknown. */
  private async lastWritten(row: RecordingRow): Promise<number> {
    try {
      const first = this.storage.hostPath(row.path)
      const count = Math.max(row.parts.length, countParts(first))
      const changed = async (index: number) => (await stat(partName(first, index)).catch(() => null))?.mtimeMs ?? 0
      // The newest part may be missing: the catalogue knows it before it has a picture.
      const all = await Promise.all([...Array(count).keys()].map((index) => changed(index + 1)))
      return Math.round(Math.max(0, ...all))
    } catch {
      return 0
    }
  }

  /** Writes the verdict; on a full disk the commit may fail and is tried again until it holds. */
  private enter(row: RecordingRow, { state, durationMs, sizeBytes, parts }: RecordingVerdict, end: number): RecordingRow {
    const change = { state, duration: durationMs, size: sizeBytes, parts, timestamp_end: end }
    // Somebody may judge it anew before this could be entered: that is the newer verdict. Or correct its times, as the clock was set.
    const unjudged = () => this.catalogue.get(row.id)?.state === 'recording'
    const write = () => {
      const { timestamp_start } = this.catalogue.get(row.id) ?? row
      return this.catalogue.update(row.id, { ...change, timestamp_end: end + timestamp_start - row.timestamp_start })
    }
    return this.insistence.write(row.id, write, unjudged) ?? { ...row, ...change }
  }
}

/** Pauses are in no file, and only a video plays for as long as was recorded: it lasted until it was last written to. */
function endOfInterrupted(row: RecordingRow, { durationMs }: RecordingVerdict, written: number): number {
  const end = row.timestamp_start + durationMs
  // Slow motion plays for longer.
  if (row.media_type === 'slowmotion') return written > 0 ? Math.min(end, Math.max(row.timestamp_start, written)) : end
  return Math.max(end, written)
}
