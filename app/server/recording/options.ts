/** What the recorder is given from outside, beside the parts that it acts on. */
import type { DeviceStorage } from '../files/index.ts'
import type { DiskSpace } from '../platform/index.ts'
import { type RecordingDefaults, UNTOUCHED } from './plan.ts'

export interface RecordingLimits {
  /** Free bytes that must remain beyond the estimate when a recording starts. */
  readonly startMarginBytes: number
  /** A recording goes on in a further part beyond this; 0: no limit. */
  readonly partMaxBytes: number
  readonly partMaxMs: number
}

export interface RecorderOptions {
  /** What the user has set for recordings that do not say otherwise. */
  readonly defaults: () => RecordingDefaults
  readonly limits: () => RecordingLimits
  /** Pictures that may wait for the disk; undefined: as the helper chooses. */
  readonly queueFrames: () => number | undefined
  /** Deletes what may be deleted until that much more is free; false: there was nothing. */
  readonly makeRoom: (bytes: number) => Promise<boolean>
  /** Whether the past of a camera is kept, so that a recording can begin in it. */
  readonly keepsPast: (camera: number) => boolean
  /** Where recordings go, in day folders below. */
  readonly folder: () => { readonly devicePath: string; readonly hostPath: string }
  /** Of the folder's file system; null: it cannot be asked. */
  readonly space: () => DiskSpace | null
  readonly clock: { now(): Date; readonly synchronised: boolean; readonly bootId: string }
}

export const USUAL_LIMITS: RecordingLimits = {
  startMarginBytes: 1_000_000_000,
  partMaxBytes: 2 * 1024 ** 3,
  partMaxMs: 3_600_000,
}

/** As the section `storage` of the configuration has them. */
export function limitsOf(section: {
  readonly start_margin_bytes: number
  readonly segment_max_bytes: number
  readonly segment_max_seconds: number
}): RecordingLimits {
  return {
    startMarginBytes: section.start_margin_bytes,
    partMaxBytes: section.segment_max_bytes,
    partMaxMs: section.segment_max_seconds * 1000,
  }
}

/** All that is not given is as on a device that nobody has configured. */
export function withUsual(storage: DeviceStorage, given: Partial<RecorderOptions>): RecorderOptions {
  return {
    defaults: () => UNTOUCHED,
    limits: () => USUAL_LIMITS,
    queueFrames: () => undefined,
    makeRoom: async () => false,
    keepsPast: () => false,
    folder: () => ({ devicePath: storage.recordings, hostPath: storage.hostPath(storage.recordings) }),
    space: () => storage.space(storage.recordings),
    clock: { now: () => new Date(), synchronised: true, bootId: '' },
    ...given,
  }
}
