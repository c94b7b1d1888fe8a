/**
 * Recordings at set times. What falls into a time when the device is off is not made up for; where the clock is changed for summer time, the
 * cron library decides; a step of the clock neither holds up nor repeats anything. A recording that runs already is not disturbed: that time
 * is left out.
 */
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import cron from 'node-cron'
import type { Bus } from '../bus.ts'
import { type Cameras, QUALITIES } from '../cameras/index.ts'
import type { Component } from '../component.ts'
import { ApiError, errorText, InvalidRequest } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { Store, Table } from '../store/index.ts'
import { CronTimer, nextCronTime } from './cron-timer.ts'
import { AUDIO_CODECS, CONTAINERS, chooseFormat, MODES, VIDEO_CODECS } from './formats.ts'
import type { Recorder } from './recorder.ts'

function oneOf<const V extends readonly string[]>(values: V) {
  return Type.Unsafe<V[number]>(Type.Union(values.map((value) => Type.Literal(value))))
}

const Entry = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 64, pattern: '^[^\\x00-\\x1f]+$' }),
    enabled: Type.Boolean(),
    cron: Type.String({
      minLength: 9,
      maxLength: 100,
      description: 'minute hour day month weekday, local time; six fields begin with seconds',
      examples: ['0 8 * * 1-5'],
    }),
    duration_seconds: Type.Integer({ minimum: 1, maximum: 2_147_483 }),
    camera: Type.Integer({ minimum: 0, maximum: 255 }),
    mode: oneOf(MODES),
    quality: Type.Optional(oneOf(QUALITIES)),
    resolution: Type.Optional(Type.String({ pattern: '^[1-9]\\d{1,4}x[1-9]\\d{1,4}$' })),
    fps: Type.Optional(Type.Integer({ minimum: 1, maximum: 240 })),
    bitrate: Type.Optional(Type.Integer({ minimum: 64_000, maximum: 100_000_000, description: 'bits per second' })),
    includeAudio: Type.Optional(Type.Boolean()),
    format: Type.Optional(oneOf(CONTAINERS)),
    video_codec: Type.Optional(oneOf(VIDEO_CODECS)),
    audio_codec: Type.Optional(oneOf(AUDIO_CODECS)),
    pre_roll: Type.Optional(Type.Boolean()),
    interval_ms: Type.Optional(Type.Integer({ minimum: 100, maximum: 86_400_000 })),
  },
  { additionalProperties: false },
)
export const ScheduleEntries = Type.Array(Entry, { maxItems: 64 })
export type ScheduleEntry = Static<typeof Entry>

const KEY = 'recordingSchedule'

export class RecordingSchedule implements Component {
  private table: Table<string, unknown> | undefined
  /** By name. */
  private readonly timers = new Map<string, CronTimer>()
  private readonly onStep = () => {
    for (const timer of this.timers.values()) timer.look()
  }

  constructor(
    private readonly store: Store,
    private readonly recorder: Recorder,
    private readonly cameras: Cameras,
    private readonly bus: Bus,
    private readonly log: Logger,
  ) {}

  start(): void {
    this.table = this.store.table('settings')
    this.apply(this.entries)
    this.bus.on('clock-stepped', this.onStep)
  }

  stop(): void {
    this.bus.off('clock-stepped', this.onStep)
    this.apply([])
    this.table = undefined
  }

  get entries(): readonly ScheduleEntry[] {
    const stored = this.table?.get(KEY)
    return Value.Check(ScheduleEntries, stored) ? stored : []
  }

  /** When an entry is due next; null: switched off, or never. */
  nextRun({ name }: ScheduleEntry): Date | null {
    return this.timers.get(name)?.next ?? null
  }

  /** Replaces the whole list, or throws what is wrong with it and changes nothing. */
  change(entries: readonly ScheduleEntry[]): void {
    for (const [i, entry] of entries.entries()) {
      const field = `body.schedules.${i}`
      const checked = cron.validateDetailed(entry.cron)
      if (!checked.valid) throw new InvalidRequest(`${field}.cron`, checked.errors[0]?.message ?? 'no cron expression')
      if (nextCronTime(entry.cron) === null) throw new InvalidRequest(`${field}.cron`, 'There is no such time')
      if (entries.findIndex(({ name }) => name === entry.name) !== i)
        throw new InvalidRequest(`${field}.name`, 'The name is taken')
      this.cameras.view(entry.camera)
      checkFormat(entry)
    }
    this.store.transaction(() => this.table?.put(KEY, entries))
    this.apply(entries)
    this.bus.publish('config', 'recording_schedule_changed', { entries: entries.length })
  }

  private apply(entries: readonly ScheduleEntry[]): void {
    for (const timer of this.timers.values()) timer.stop()
    this.timers.clear()
    for (const entry of entries.filter(({ enabled }) => enabled)) {
      const timer = new CronTimer(
        () => nextCronTime(entry.cron),
        () => void this.run(entry),
      )
      this.timers.set(entry.name, timer)
      timer.start()
    }
  }

  /** Never throws: the next time is tried anew. */
  async run({ name, enabled: _enabled, cron: _cron, duration_seconds, ...request }: ScheduleEntry): Promise<void> {
    const { camera } = request
    try {
      if (this.recorder.isRecording(camera)) {
        this.log.warn({ schedule: name, camera }, 'scheduled recording left out: another one runs')
        this.bus.publish('recording', 'schedule_skipped', { schedule: name, camera, reason: 'recording' })
        return
      }
      const origin = { trigger: 'schedule', createdBy: name } as const
      await this.recorder.startRecording({ ...request, duration: duration_seconds }, origin)
    } catch (error) {
      const code = error instanceof ApiError ? error.code : 'INTERNAL_ERROR'
      this.log.error({ schedule: name, camera, error: errorText(error) }, 'scheduled recording not started')
      this.bus.publish('recording', 'schedule_failed', { schedule: name, camera, code })
    }
  }
}

/** What no file can hold is refused now, not when it is due. Whether there is sound, and what the settings say, is known then. */
function checkFormat({ mode, format, ...wishes }: ScheduleEntry): void {
  if (format !== undefined) chooseFormat(mode, { ...wishes, format }, { available: true, usual: true })
}
