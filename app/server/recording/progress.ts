/** What the helper tells of a running recording, entered while it runs: when it really began, and each part that is complete. */
import { existsSync } from 'node:fs'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { RecorderBegan, RecorderPart } from '../media/index.ts'
import type { Catalogue } from './catalogue.ts'
import { partName } from './parts.ts'
import type { NewRow, RecordingPart } from './row.ts'
import type { Active } from './slots.ts'

export class Progress {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly log: Logger,
  ) {}

  /** A recording begins with its first picture, captured `age_ms` ago: the start took a while, or the helper had kept some of the past. */
  began(active: Active, { age_ms: age }: RecorderBegan): void {
    active.watch.begin(age)
    active.pastMs = Math.min(age, active.plan.preRollMs)
    this.enter(active, 'when a recording began cannot be entered', () => {
      // What is stored may have been corrected meanwhile: the clock was set.
      const { timestamp_start } = this.catalogue.get(active.row.id) ?? active.row
      const start = timestamp_start + Math.round(performance.now() - active.startedAt - age)
      return { timestamp_start: start, timestamp_end: start }
    })
  }

  /** Whether another part is being written now: its file is there before this one is closed. */
  partClosed(active: Active, { index, duration_ms: duration, size_bytes: size }: RecorderPart): boolean {
    const { row, hostPath } = active
    const at = (n: number) => ({ filename: partName(row.filename, n), path: partName(row.path, n) })
    const parts: RecordingPart[] = [...row.parts.slice(0, index - 1), { ...at(index), duration, size, sha256: null }]
    const more = existsSync(partName(hostPath, index + 1))
    if (more) parts.push({ ...at(index + 1), duration: 0, size: 0, sha256: null })
    this.enter(active, 'part cannot be entered; it is found again at the end', () => ({ parts }))
    if (more) active.part = index + 1
    return more
  }

  private enter(active: Active, failure: string, change: () => Partial<NewRow>): void {
    try {
      active.row = this.catalogue.update(active.row.id, change()) ?? active.row
    } catch (error) {
      this.log.error({ id: active.row.id, error: errorText(error) }, failure)
    }
  }
}
