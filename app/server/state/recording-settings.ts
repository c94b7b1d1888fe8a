/** The state keys that say how recordings are made, as the recorder reads them. Pure but for the table. */
import { Value } from '@sinclair/typebox/value'
import { type RecordingDefaults, UNTOUCHED } from '../recording/index.ts'
import type { Store } from '../store/index.ts'
import { STORED_KEYS } from './keys.ts'

type Settings = Readonly<Record<string, unknown>>

/** Values that the specification has twice: as a key of their own and as a field of an object. They are one value. */
const TWINS = [
  { key: 'timelapseInterval', object: 'timelapseSettings', field: 'interval' },
  { key: 'timelapseDuration', object: 'timelapseSettings', field: 'duration' },
  { key: 'slowMotionFps', object: 'slowMotionSettings', field: 'captureFps' },
] as const

/**
 * The batch with the twins of what it sets, so that whichever was written last holds for both. Where a batch sets both and they differ, the
 * one that is new wins, and the plain key when both are.
 */
export function withTwins(batch: Settings, current: (key: string) => unknown): Settings {
  const result: Record<string, unknown> = { ...batch }
  for (const { key, object, field } of TWINS) {
    if (!(key in batch) && !(object in batch)) continue
    const before = current(key)
    const plain = key in batch ? batch[key] : undefined
    const whole = (result[object] ?? current(object)) as Settings
    const inside = object in batch ? whole[field] : undefined
    const changed = plain !== undefined && !(Value.Equal(plain, before) && inside !== undefined)
    const value = changed ? plain : (inside ?? plain)
    result[key] = value
    result[object] = { ...whole, [field]: value }
  }
  return result
}

/** What users have set for recordings; pictures of modes that nobody has touched are as the main stream. */
export function recordingDefaults(store: Store): RecordingDefaults {
  const settings = store.table<string, unknown>('settings')
  const object = (key: string) => (settings.get(key) ?? {}) as Record<string, never>
  const timelapse = object('timelapseSettings')
  const slowmotion = object('slowMotionSettings')
  return {
    mode: settings.get('recordingMode') as string | undefined,
    video: object('videoRecordingSettings'),
    timelapse: {
      ...UNTOUCHED.timelapse,
      ...timelapse,
      ...present('interval', settings.get('timelapseInterval')),
      ...present('duration', settings.get('timelapseDuration')),
    },
    slowmotion: { ...UNTOUCHED.slowmotion, ...slowmotion, ...present('captureFps', settings.get('slowMotionFps')) },
  }
}

/** Bytes of the past that are kept of a camera. */
export function recordingBufferSize(store: Store): number {
  return Number(store.table<string, unknown>('settings').get('recordingBufferSize') ?? STORED_KEYS.recordingBufferSize?.initial)
}

/** Undefined: nobody has touched it. */
export function recordingQueueSize(store: Store): number | undefined {
  return store.table<string, unknown>('settings').get('recordingQueueSize') as number | undefined
}

function present(name: string, value: unknown): Record<string, never> {
  return value === undefined ? {} : { [name]: value as never }
}
