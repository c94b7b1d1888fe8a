import pino from 'pino'
import t, { type Test } from 'tap'
import { Bus, type ServerEvent } from '../../../app/server/bus.ts'
import type { Cameras } from '../../../app/server/cameras/index.ts'
import { Conflict, NotFound } from '../../../app/server/errors.ts'
import type { Recorder } from '../../../app/server/recording/index.ts'
import { RecordingSchedule, TriggeredRecordings } from '../../../app/server/recording/index.ts'
import { Store } from '../../../app/server/store/index.ts'
import { until } from '../../support/api.ts'
import { scratchFolder } from '../../support/scratch.ts'

const silent = pino({ level: 'silent' })
const RULE = { enabled: true, cameras: null, pre_roll_seconds: 3, post_roll_seconds: 1, max_seconds: 60 }

/** A recorder of two cameras that only takes note. */
class Notebook {
  readonly lines: string[] = []
  readonly running = new Map<number, number>()
  private ids = 0

  isRecording(camera: number): boolean {
    return this.running.has(camera)
  }

  status(camera: number) {
    const id = this.running.get(camera)
    return { row: id === undefined ? null : { id } }
  }

  async startRecording({ camera = 0, ...request }: { camera?: number; preRollMs?: number }, origin: { trigger: string }) {
    if (this.running.has(camera)) throw new Conflict('runs')
    this.ids += 1
    this.running.set(camera, this.ids)
    this.lines.push(`start ${camera} ${origin.trigger} ${JSON.stringify(request)}`)
    return { row: { id: this.ids } }
  }

  async stopRecording(camera: number) {
    this.running.delete(camera)
    this.lines.push(`stop ${camera}`)
  }
}

async function parts(t: Test) {
  const store = new Store(scratchFolder(t, 'automatic'), silent)
  await store.start()
  t.teardown(() => store.stop())
  const bus = new Bus()
  const events: ServerEvent[] = []
  bus.on('event', (event) => events.push(event))
  const notebook = new Notebook()
  const cameras = {
    list: () => [{ id: 0 }, { id: 1 }],
    view: (id: number) => {
      if (id > 1) throw new NotFound(`camera ${id}`)
      return { id }
    },
  } as unknown as Cameras
  return { store, bus, events, notebook, cameras, recorder: notebook as unknown as Recorder }
}

async function triggered(t: Test) {
  const { store, recorder, cameras, bus, ...rest } = await parts(t)
  const triggers = new TriggeredRecordings(store, recorder, cameras, bus, silent)
  triggers.start()
  t.teardown(() => triggers.stop())
  return { ...rest, bus, triggers }
}

/** Motion has started recording 1 of camera 0. */
async function recordingMotion(t: Test) {
  const here = await triggered(t)
  here.triggers.change({ motion: RULE, alert: { ...RULE, enabled: false } })
  here.bus.publish('motion', 'motion_started', { camera: 0 })
  await until(
    () => here.notebook.running.get(0),
    (id) => id === 1,
    'a recording',
  )
  return here
}

t.test('motion records with what was before and after it; of a manual recording only an event tells', async (t) => {
  const { bus, events, notebook, triggers } = await triggered(t)
  const { lines } = notebook
  bus.publish('motion', 'motion_started', { camera: 0 })
  t.equal(triggers.needsPast(0), false)
  triggers.change({ motion: RULE, alert: { ...RULE, cameras: [1] } })
  t.equal(triggers.needsPast(0), true)
  t.throws(() => triggers.change({ motion: { ...RULE, cameras: [7] }, alert: RULE }), { code: 'NOT_FOUND' })

  bus.publish('motion', 'motion_started', { camera: 0 })
  await until(
    () => lines.length,
    (count) => count === 1,
    'a recording',
  )
  t.same(
    lines,
    ['start 0 motion {"mode":"video","preRollMs":3000}'],
    'without a tag: it is no different from others to retention',
  )
  const ended = performance.now()
  bus.publish('motion', 'motion_stopped', { camera: 0 })
  await until(
    () => lines.at(-1),
    (line) => line === 'stop 0',
    'its end',
  )
  t.ok(performance.now() - ended >= 950, 'after the post-roll')

  notebook.running.set(1, 99)
  for (const type of [
    'storage_full',
    'retention_space',
    'retention_exhausted',
    'replication_full',
    'update_failed',
    'restart_failed',
    'data_recreated',
    'factory_reset_withdrawn',
  ])
    bus.publish('alert', type, {})
  bus.publish('alert', 'cpu_high', {})
  bus.publish('motion', 'motion_started', { camera: 1 })
  bus.publish('motion', 'motion_stopped', { camera: 1 })
  await until(
    () => events.filter(({ type }) => type === 'trigger_noticed').map(({ data }) => data),
    (more) => more.length === 2,
    'both events',
  ).then((noticed) =>
    t.same(noticed, [
      { id: 99, camera: 1, trigger: 'alert' },
      { id: 99, camera: 1, trigger: 'motion' },
    ]),
  )
  t.equal(lines.length, 2, 'and is left as it is, without a tag')
  t.equal(notebook.running.get(1), 99, 'nobody stopped it')
})

t.test('what goes on in a new file after a crash of the helper ends after the post-roll', async (t) => {
  const { bus, notebook } = await recordingMotion(t)
  notebook.running.delete(0)
  bus.publish('recording', 'stopped', { camera: 0, id: 1, reason: 'helper_lost' })
  notebook.running.set(0, 17)
  bus.publish('recording', 'resumed', { camera: 0, id: 17, after: 1 })
  await until(
    () => notebook.lines.at(-1),
    (line) => line === 'stop 0',
    'its end',
  )
})

t.test('what a user stops is not stopped again, and what cannot start is told', async (t) => {
  const { bus, events, notebook } = await recordingMotion(t)
  await notebook.stopRecording(0)
  bus.publish('recording', 'stopped', { camera: 0, id: 1 })
  bus.publish('motion', 'motion_stopped', { camera: 0 })
  notebook.startRecording = async () => {
    throw new Conflict('no')
  }
  bus.publish('motion', 'motion_started', { camera: 0 })
  const failed = await until(
    () => events.find(({ type }) => type === 'trigger_failed'),
    (event) => event !== undefined,
    'the event',
  )
  t.match(failed, { category: 'recording', data: { camera: 0, trigger: 'motion', code: 'CONFLICT' } })
  t.equal(notebook.lines.filter((line) => line === 'stop 0').length, 1)
})

function refusal(change: () => void): unknown {
  try {
    change()
  } catch (error) {
    return error
  }
  return null
}

t.test('a schedule is checked as a whole, runs on time, survives a restart, and disturbs nothing', async (t) => {
  const { store, bus, events, notebook, cameras, recorder } = await parts(t)
  const schedule = new RecordingSchedule(store, recorder, cameras, bus, silent)
  schedule.start()
  const entry = {
    name: 'each second',
    enabled: true,
    cron: '* * * * * *',
    duration_seconds: 5,
    camera: 0,
    mode: 'timelapse',
  } as const
  for (const [entries, details] of [
    [[{ ...entry, cron: '99 * * * *' }], 'body.schedules.0.cron'],
    [[{ ...entry, cron: '0 0 29 2 1#1' }], 'body.schedules.0.cron'],
    [[entry, entry], 'body.schedules.1.name'],
    [[{ ...entry, camera: 9 }], 'camera 9'],
    [[{ ...entry, format: 'mp4', video_codec: 'mjpeg' }], 'video_codec'],
  ] as const) {
    t.match(
      refusal(() => schedule.change(entries)),
      { details },
    )
  }
  t.same(schedule.entries, [])
  schedule.change([entry, { ...entry, name: 'off', enabled: false }])
  await until(
    () => notebook.lines.length,
    (count) => count > 0,
    'its first time',
  )
  t.equal(notebook.lines[0], 'start 0 schedule {"mode":"timelapse","duration":5}')
  await until(() => events.some(({ type }) => type === 'schedule_skipped'), Boolean, 'the second time, left out')
  t.equal(notebook.lines.length, 1)
  t.ok(schedule.nextRun(entry))
  t.equal(schedule.nextRun({ ...entry, name: 'off' }), null)
  schedule.stop()
  const again = new RecordingSchedule(store, recorder, cameras, bus, silent)
  again.start()
  t.teardown(() => again.stop())
  t.match(again.entries, [{ name: 'each second' }, { name: 'off' }])
  notebook.running.clear()
  await until(
    () => notebook.lines.length,
    (count) => count === 2,
    'again',
  )
})

t.test('of two lists, the later one holds', async (t) => {
  const { store, bus, notebook, cameras, recorder } = await parts(t)
  const schedule = new RecordingSchedule(store, recorder, cameras, bus, silent)
  schedule.start()
  t.teardown(() => schedule.stop())
  const base = { enabled: true, cron: '0 0 1 1 *', duration_seconds: 5, mode: 'video' } as const
  schedule.change([{ ...base, name: 'first', camera: 0 }])
  const due = { ...base, name: 'due', cron: '* * * * * *', camera: 0 } as const
  const kept = { ...base, name: 'kept', cron: '* * * * * *', camera: 1 } as const
  schedule.change([due])
  schedule.change([kept])
  t.match(schedule.entries, [{ name: 'kept' }])
  await until(
    () => notebook.lines.length,
    (count) => count > 0,
    'its time',
  )
  t.equal(schedule.nextRun(due), null, 'nothing is left of the other one')
  t.same([...notebook.running.keys()], [1])
})

/** A wall clock that can be stepped. */
function steppable(t: Test): (ms: number) => void {
  const Real = Date
  let ahead = 0
  class Stepped extends Real {
    constructor(...of: [] | [number | string]) {
      super(...((of.length === 0 ? [Real.now() + ahead] : of) as [number]))
    }
    static override now() {
      return Real.now() + ahead
    }
  }
  globalThis.Date = Stepped as DateConstructor
  t.teardown(() => {
    globalThis.Date = Real
  })
  return (ms) => {
    ahead += ms
  }
}

t.test('a schedule follows a step of the clock at once', async (t) => {
  const step = steppable(t)
  const { store, bus, notebook, cameras, recorder } = await parts(t)
  const schedule = new RecordingSchedule(store, recorder, cameras, bus, silent)
  schedule.start()
  t.teardown(() => schedule.stop())
  const entry = { name: 'yearly', enabled: true, cron: '0 0 1 1 *', duration_seconds: 5, camera: 0, mode: 'video' } as const
  schedule.change([entry])
  const stepTo = (moment: number) => {
    const delta_ms = moment - Date.now()
    step(delta_ms)
    bus.emit('clock-stepped', { delta_ms, synchronised: true })
  }
  const due = schedule.nextRun(entry) as Date
  stepTo(due.getTime() - 500)
  await until(
    () => notebook.lines.length,
    (count) => count === 1,
    'its time',
  )
  t.equal(schedule.nextRun(entry)?.getFullYear(), due.getFullYear() + 1)
  stepTo(due.getTime() - 86_400_000)
  t.same(schedule.nextRun(entry), due)
})
