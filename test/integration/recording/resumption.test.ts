import pino from 'pino'
import t, { type Test } from 'tap'
import type { CameraSettings, Cameras } from '../../../app/server/cameras/index.ts'
import { ApiError } from '../../../app/server/errors.ts'
import { HELPER_ERROR, HelperError, HelperTimeout, type MediaSupervisor } from '../../../app/server/media/index.ts'
import type { Catalogue, NewRow } from '../../../app/server/recording/index.ts'
import { Insistence } from '../../../app/server/recording/insistence.ts'
import { withUsual } from '../../../app/server/recording/options.ts'
import type { RecordingPlan } from '../../../app/server/recording/plan.ts'
import { Progress } from '../../../app/server/recording/progress.ts'
import { Resumption } from '../../../app/server/recording/resumption.ts'
import { Active, type Slot, Slots } from '../../../app/server/recording/slots.ts'
import { Starting } from '../../../app/server/recording/starting.ts'
import { until } from '../../support/api.ts'
import { newRow } from '../../support/recordings.ts'
import { scratchFolder } from '../../support/scratch.ts'

const silent = pino({ level: 'silent' })
const row = { id: 7, ...newRow('a.mp4') }
const slotIn = (state: Slot['state']) => Object.assign(new Slots(() => undefined).get(0), { state })

/** What the helper's death ends; `durationMs` 0: it was to run until stopped. */
function running({ durationMs = 0, deaths = 0 } = {}): Active {
  const plan = { camera: 0, durationMs, preRollMs: 0 } as unknown as RecordingPlan
  return Object.assign(new Active(row, plan, { trigger: 'manual', createdBy: null }, '/a.mp4'), { deaths })
}

/** Takes up with `begin`, as the recorder does. */
function resuming(t: Test, begin: (plan: RecordingPlan) => void = () => undefined, withinMs = 60_000) {
  const told: unknown[] = []
  const began: RecordingPlan[] = []
  const settings = { enabled: true, width: 640, height: 360, fps: 30, audio_codec: 'aac' } as CameraSettings
  const changed: { -readonly [K in keyof CameraSettings]?: CameraSettings[K] } = {}
  const attempt = (slot: Slot) =>
    it.attempt(slot, async (_resume, planned) => {
      const plan = planned()
      began.push(plan)
      begin(plan)
    })
  const it = new Resumption(
    silent,
    (type, { id }, more) => told.push([type, id, more]),
    (slot) => void attempt(slot),
    () => ({ ...settings, ...changed }),
    { withinMs, retryMs: 20 },
  )
  t.teardown(() => it.stop())
  return { it, told, began, attempt, changed }
}

t.test('what is not taken up again in time is told, what a user paused waits', async (t) => {
  const { it, told } = resuming(t, undefined, 20)
  const [paused, taken, lost] = [slotIn('paused'), slotIn('stopped'), slotIn('stopped')]
  for (const slot of [paused, taken, lost]) it.expect(slot, running())
  taken.resume = null
  await until(
    () => told.length,
    (count) => count > 0,
    'the event',
  )
  t.same(told, [['resume_failed', 7, { code: 'CAMERA_NOT_CONNECTED' }]])
  t.equal(lost.resume, null)
  t.match(paused.resume, { row: { id: 7 } })
})

t.test('a start that fails is tried again', async (t) => {
  let busy = 2
  const { it, told, began, attempt } = resuming(t, () => {
    if (busy-- > 0) throw new ApiError('SERVICE_UNAVAILABLE', 'busy')
  })
  const slot = slotIn('stopped')
  it.expect(slot, running())
  await attempt(slot)
  t.match(slot.resume, { row: { id: 7 } }, 'still expected')
  await until(
    () => began.length,
    (count) => count === 3,
    'the third start',
  )
  t.equal(slot.resume, null)
  await attempt(slot)
  t.equal(began.length, 3, 'taken up once')
  t.same(told, [])
})

t.test('what cannot be started in time is told, with the reason', async (t) => {
  const full = () => {
    throw new ApiError('INSUFFICIENT_STORAGE', 'full')
  }
  const { it, told, attempt } = resuming(t, full, 0)
  const slot = slotIn('stopped')
  it.expect(slot, running())
  await attempt(slot)
  t.same(told, [['resume_failed', 7, { code: 'INSUFFICIENT_STORAGE' }]])
  t.equal(slot.resume, null)
})

t.test('what no attempt could start until the time was over is told with the reason of the last', async (t) => {
  const full = () => {
    throw new ApiError('INSUFFICIENT_STORAGE', 'full')
  }
  const { it, told, attempt } = resuming(t, full, 50)
  const slot = slotIn('stopped')
  it.expect(slot, running())
  await attempt(slot)
  await until(
    () => told.length,
    (count) => count > 0,
    'the event',
  )
  t.same(told, [['resume_failed', 7, { code: 'INSUFFICIENT_STORAGE' }]])
})

t.test('of a camera that was stopped or set otherwise nothing is taken up', async (t) => {
  const { it, told, began, attempt, changed } = resuming(t)
  const [stopped, set, late] = [slotIn('stopped'), slotIn('stopped'), slotIn('stopped')]
  for (const slot of [stopped, set, late]) it.expect(slot, running())
  it.check(stopped)
  t.match(stopped.resume, { row: { id: 7 } }, 'nothing has changed')
  changed.enabled = false
  it.check(stopped)
  t.same(told.splice(0), [['resume_failed', 7, { code: 'CAMERA_NOT_CONNECTED' }]])
  Object.assign(changed, { enabled: true, width: 1280, height: 720 })
  it.check(set)
  t.same(told.splice(0), [['resume_failed', 7, { code: 'CONFLICT' }]])
  // Changed while it waited for room.
  await attempt(late)
  t.same(told, [['resume_failed', 7, { code: 'CONFLICT' }]])
  t.same([stopped.resume, set.resume, late.resume], [null, null, null])
  t.equal(began.length, 0)
})

t.test('what goes on is not taken up twice, though something failed after its beginning', async (t) => {
  const slot = slotIn('stopped')
  const { it, told, attempt } = resuming(t, () => {
    slot.active = running()
    throw new Error('a listener')
  })
  it.expect(slot, running())
  await attempt(slot)
  t.equal(slot.resume, null)
  t.same(told, [])
})

t.test('a wanted duration ends when it would have ended', async (t) => {
  const { it, told, began, attempt } = resuming(t)
  const [over, back] = [slotIn('stopped'), slotIn('stopped')]
  it.expect(over, running({ durationMs: 900 }))
  t.equal(over.resume, null, 'nothing worth a file is left')
  it.expect(over, running({ durationMs: 1020 }))
  it.expect(back, running({ durationMs: 60_000 }))
  await until(
    () => told.length,
    (count) => count === 1,
    'its end',
  )
  await attempt(over)
  await attempt(back)
  t.equal(began.length, 1)
  t.ok((began[0]?.durationMs ?? 0) <= 59_980, `${began[0]?.durationMs} ms`)
})

t.test('a recording that ends each helper soon is taken up ever later', async (t) => {
  const { it, began, attempt } = resuming(t)
  const slot = slotIn('stopped')
  it.expect(slot, running())
  t.equal(slot.resume?.deaths, 1)
  t.equal(slot.resume?.notBefore, slot.resume?.since, 'the first time at once')
  const pauses = [1, 2, 3, 20].map((deaths) => {
    it.expect(slot, running({ deaths }))
    return (slot.resume?.notBefore ?? 0) - (slot.resume?.since ?? 0)
  })
  t.same(pauses.map(Math.round), [20, 40, 80, 60_000])
  it.expect(slot, running({ deaths: 1 }))
  await attempt(slot)
  t.equal(began.length, 0)
  await until(
    () => began.length,
    (count) => count === 1,
    'its turn',
  )
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
  const insistence = new Insistence(silent, 20)
  t.teardown(() => insistence.stop())
  return { calls, rows, catalogue, it: new Starting(...parts, silent, options, insistence) }
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
  const catalogue = corrected.catalogue as unknown as Catalogue
  new Progress(catalogue, silent).began(active, { id: 1, age_ms: 9_000 })
  const after = performance.now()
  const late = active.row.timestamp_start - 4_991_000
  t.ok(late >= Math.floor(before - active.startedAt) && late <= Math.ceil(after - active.startedAt), `${late} ms`)
  t.equal(active.row.timestamp_end, active.row.timestamp_start, 'it does not end before it begins')
  t.ok(active.watch.ms >= 9_000 && active.watch.ms <= 9_000 + performance.now() - before)
  t.ok(active.remainingMs <= 30_000 && active.remainingMs >= 29_999 - (performance.now() - before), 'the past does not count')
})

t.test('an entry that cannot be taken back on a full disk goes as soon as it can', async (t) => {
  const refused = starting(t, () => {
    throw new HelperError(HELPER_ERROR.busy, 'busy')
  })
  const { catalogue, rows } = refused
  const { remove } = catalogue
  catalogue.remove = () => {
    catalogue.remove = remove
    throw new Error('the database is full')
  }
  await t.rejects(begin(refused), { code: 'SERVICE_UNAVAILABLE' })
  await until(
    () => rows.size,
    (count) => count === 0,
    'its removal',
  )
})
