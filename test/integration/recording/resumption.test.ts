import pino from 'pino'
import t, { type Test } from 'tap'
import type { Cameras } from '../../../app/server/cameras/index.ts'
import { ApiError } from '../../../app/server/errors.ts'
import { HelperTimeout, type MediaSupervisor } from '../../../app/server/media/index.ts'
import type { Catalogue, NewRow } from '../../../app/server/recording/index.ts'
import { withUsual } from '../../../app/server/recording/options.ts'
import type { RecordingPlan } from '../../../app/server/recording/plan.ts'
import { type Resume, Resumption } from '../../../app/server/recording/resumption.ts'
import { type Slot, Slots } from '../../../app/server/recording/slots.ts'
import { Starting } from '../../../app/server/recording/starting.ts'
import { until } from '../../support/api.ts'
import { newRow } from '../../support/recordings.ts'
import { scratchFolder } from '../../support/scratch.ts'

const silent = pino({ level: 'silent' })
const row = { id: 7, ...newRow('a.mp4') }
const resume = { plan: {}, origin: { trigger: 'manual', createdBy: null }, row } as unknown as Resume
const slotIn = (state: Slot['state']) => Object.assign(new Slots(() => undefined).get(0), { state })

t.test('what is not taken up again in time is told, what a user paused waits', async (t) => {
  const told: unknown[] = []
  const resumption = new Resumption(silent, (type, { id }, more) => told.push([type, id, more]), 20)
  t.teardown(() => resumption.stop())
  const [paused, taken, lost] = [slotIn('paused'), slotIn('stopped'), slotIn('stopped')]
  for (const slot of [paused, taken, lost]) resumption.expect(slot, resume)
  taken.resume = null
  await until(
    () => told.length,
    (count) => count > 0,
    'the event',
  )
  t.same(told, [['resume_failed', 7, { code: 'CAMERA_NOT_CONNECTED' }]])
  t.equal(lost.resume, null)
  t.equal(paused.resume, resume)
  await resumption.attempt(resume, async () => undefined)
  t.equal(told.length, 1)
  await resumption.attempt(resume, async () => {
    throw new ApiError('INSUFFICIENT_STORAGE', 'full')
  })
  t.same(told[1], ['resume_failed', 7, { code: 'INSUFFICIENT_STORAGE' }])
})

/** A helper that answers a start as `start` says. */
function starting(t: Test, start: () => unknown) {
  const calls: string[] = []
  const rows = new Map<number, NewRow & { id: number }>()
  const catalogue = {
    create: (fields: NewRow) => {
      rows.set(1, { id: 1, ...fields })
      return rows.get(1)
    },
    get: (id: number) => rows.get(id),
    update: (id: number, change: Partial<NewRow>) => {
      rows.set(id, { ...(rows.get(id) as NewRow & { id: number }), ...change })
      return rows.get(id)
    },
    remove: (id: number) => {
      calls.push(`remove ${id}`)
      rows.delete(id)
    },
  }
  const media = {
    call: async (method: string, params: { id: number; queue_frames?: number }) => {
      calls.push(`${method} ${params.id} ${params.queue_frames ?? ''}`.trim())
      return method === 'recorder.start' ? start() : {}
    },
  }
  const hostPath = scratchFolder(t, 'starting')
  const options = withUsual({} as never, {
    folder: () => ({ devicePath: '/media/data/recordings', hostPath }),
    queueFrames: () => 42,
  })
  const parts = [{} as Cameras, media as unknown as MediaSupervisor, catalogue as unknown as Catalogue] as const
  return { calls, rows, it: new Starting(...parts, silent, options) }
}

const mode = { width: 640, height: 360, fps: 30 }
const plan = { camera: 0, kind: 'video', stem: 'a', container: 'mp4', mode, durationMs: 30_000, preRollMs: 10_000 }
const begin = ({ it }: ReturnType<typeof starting>) =>
  it.begin(slotIn('stopped'), plan as unknown as RecordingPlan, { trigger: 'manual', createdBy: null })

t.test('a start that is not answered is taken back before its entry goes', async (t) => {
  const late = starting(t, () => {
    throw new HelperTimeout('recorder.start')
  })
  await t.rejects(begin(late), { code: 'CAMERA_NOT_CONNECTED' })
  t.same(late.calls, ['recorder.start 1 42', 'recorder.stop 1', 'remove 1'])
})

t.test('a start that is corrected while the helper begins counts from the first picture on', async (t) => {
  const corrected = starting(t, () => {
    const known = corrected.rows.get(1) as NewRow & { id: number }
    corrected.rows.set(1, { ...known, timestamp_start: 5_000_000 })
    return {}
  })
  const active = await begin(corrected)
  t.equal(active.watch.ms, 0)
  const before = performance.now()
  corrected.it.began(active, 9_000)
  const after = performance.now()
  const late = active.row.timestamp_start - 4_991_000
  t.ok(late >= Math.floor(before - active.startedAt) && late <= Math.ceil(after - active.startedAt), `${late} ms`)
  t.ok(active.watch.ms >= 9_000 && active.watch.ms <= 9_000 + performance.now() - before)
  t.ok(active.remainingMs <= 30_000 && active.remainingMs >= 29_999 - (performance.now() - before), 'the past does not count')
})
