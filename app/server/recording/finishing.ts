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
import { partName } from './parts.ts'
import type { NewRow, RecordingRow } from './row.ts'
import type { Active, EndReason } from './slots.ts'

const RETRY_MS = 2000

export class Finishing {
  private readonly retries = new Set<NodeJS.Timeout>()

  constructor(
    private readonly catalogue: Catalogue,
    private readonly storage: DeviceStorage,
    private readonly bus: Bus,
    private readonly log: Logger,
  ) {}

  /** Judges what an earlier process left unfinished. */
  async recover(): Promise<void> {
    for (const row of this.catalogue.inState('recording')) {
      const verdict = await this.judge(row)
      const judged = this.enter(row, verdict, await this.endOfInterrupted(row, verdict))
      const { state, durationMs, sizeBytes, parts } = verdict
      this.log.warn({ id: row.id, state, durationMs, sizeBytes, parts: parts.length }, 'interrupted recording recovered')
      this.publish('recovered', judged, { state })
      this.bus.emit('recording-finished', judged)
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
    if (active.stoppedBy) actingAs(active.stoppedBy, tell)
    else tell()
    this.bus.emit('recording-finished', row)
    return row
  }

  publish(type: string, row: RecordingRow, more: Record<string, unknown>): void {
    this.bus.publish('recording', type, { id: row.id, camera: row.camera, filename: row.filename, path: row.path, ...more })
  }

  stop(): void {
    for (const timer of this.retries) clearTimeout(timer)
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

  /** The file of a timelapse plays for less time than was recorded: it ended when its last part was last written to. */
  private async endOfInterrupted(row: RecordingRow, { durationMs, parts }: RecordingVerdict): Promise<number> {
    const end = row.timestamp_start + durationMs
    if (row.media_type === 'video') return end
    const written = await stat(this.storage.hostPath(partName(row.path, parts.length))).catch(() => null)
    const last = Math.round(written?.mtimeMs ?? 0)
    // That of slow motion plays for longer.
    if (row.media_type === 'slowmotion') return last > 0 ? Math.min(end, Math.max(row.timestamp_start, last)) : end
    return Math.max(end, last)
  }

  /** Writes the verdict; on a full disk the commit may fail and is tried again until it holds. */
  private enter(row: RecordingRow, { state, durationMs, sizeBytes, parts }: RecordingVerdict, end: number): RecordingRow {
    const change = { state, duration: durationMs, size: sizeBytes, parts, timestamp_end: end }
    return this.update(row, change) ?? { ...row, ...change }
  }

  private update(row: RecordingRow, change: Partial<NewRow>): RecordingRow | undefined {
    try {
      return this.catalogue.update(row.id, change)
    } catch (error) {
      this.log.error({ id: row.id, error: errorText(error) }, 'catalogue cannot be written; trying again')
      const timer = setTimeout(() => {
        this.retries.delete(timer)
        this.update(row, change)
      }, RETRY_MS)
      this.retries.add(timer)
      return undefined
    }
  }
}
