/** Recordings that begin by themselves: what triggers them, and when they are due. */
import { type Static, Type } from '@sinclair/typebox'
import { seesCamera } from '../caller.ts'
import { PermissionDenied } from '../errors.ts'
import { type Caller, type Route, route } from '../http/index.ts'
import { type RecordingSchedule, ScheduleEntries, type TriggeredRecordings, TriggerRules } from '../recording/index.ts'
import { closed, Nullable } from './schemas.ts'

const SchedulesBody = Type.Object({ schedules: ScheduleEntries }, closed)
const Schedules = Type.Object({
  schedules: ScheduleEntries,
  next: Type.Array(Type.Object({ name: Type.String(), next_run: Nullable(Type.String({ description: 'ISO 8601' })) })),
})

export function recordingPlansRoutes(triggers: TriggeredRecordings, schedule: RecordingSchedule): Route[] {
  const shared = { rate: 'api', tag: 'Recording' } as const
  return [
    route({
      ...shared,
      method: 'GET',
      path: '/api/recording/triggers',
      access: 'viewer',
      summary: 'What starts a recording by itself',
      response: TriggerRules,
      handler: () => triggers.rules,
    }),
    route({
      ...shared,
      method: 'PUT',
      path: '/api/recording/triggers',
      access: 'operator',
      summary: 'Set what starts a recording by itself',
      description:
        'Motion and alerts, each with what goes before and after. A recording that runs already is not disturbed: it gets a tag.',
      body: TriggerRules,
      response: TriggerRules,
      errors: ['NOT_FOUND'],
      handler: ({ body, caller }) => {
        wholeDevice(caller)
        return triggers.change(body)
      },
    }),
    route({
      ...shared,
      method: 'GET',
      path: '/api/recording/schedule',
      access: 'viewer',
      summary: 'Recordings at set times',
      response: Schedules,
      description: 'Of the cameras that the user may see.',
      handler: ({ caller }) => view(schedule, caller),
    }),
    route({
      ...shared,
      method: 'PUT',
      path: '/api/recording/schedule',
      access: 'operator',
      summary: 'Set the recordings at set times; replaces the list',
      description:
        'Times are local. What falls into a time when the device is off is not made up for. Where another recording runs, the time is left out and the event `schedule_skipped` is sent.',
      body: SchedulesBody,
      response: Schedules,
      errors: ['NOT_FOUND', 'INVALID_FORMAT', 'UNSUPPORTED_SETTING'],
      handler: async ({ body, caller }) => {
        wholeDevice(caller)
        schedule.change(body.schedules)
        return view(schedule, caller)
      },
    }),
  ]
}

function view(schedule: RecordingSchedule, caller: Caller | null): Static<typeof Schedules> {
  const schedules = schedule.entries.filter(({ camera }) => caller !== null && seesCamera(caller, camera))
  const next = schedules.map((entry) => ({ name: entry.name, next_run: schedule.nextRun(entry)?.toISOString() ?? null }))
  return { schedules, next }
}

/** The lists are of all cameras: who may see only some cannot replace them. */
function wholeDevice(caller: Caller | null): void {
  if (!caller || caller.cameras !== null) throw new PermissionDenied('all cameras')
}
