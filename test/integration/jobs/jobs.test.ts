import { setTimeout as delay } from 'node:timers/promises'
import pino from 'pino'
import t, { type Test } from 'tap'
import { actingAs } from '../../../app/server/actor.ts'
import { Bus, type ServerEvent } from '../../../app/server/bus.ts'
import type { Caller } from '../../../app/server/caller.ts'
import { ApiError } from '../../../app/server/errors.ts'
import { type JobContext, Jobs } from '../../../app/server/jobs/index.ts'
import { Store } from '../../../app/server/store/index.ts'
import { until } from '../../support/api.ts'
import { scratchFolder } from '../../support/scratch.ts'

const log = pino({ level: 'silent' })
const ADMIN: Caller = { username: 'root', role: 'admin', via: 'bearer', mustChangePassword: false, cameras: null }
const ALL = { limit: 1000, offset: 0 }

async function open(t: Test, folder = scratchFolder(t, 'jobs')) {
  const store = new Store(folder, log)
  await store.start()
  const bus = new Bus()
  const events: ServerEvent[] = []
  bus.on('event', (event) => events.push(event))
  const jobs = new Jobs(store, bus, log, undefined, 10)
  jobs.start()
  const close = async () => {
    await jobs.stop()
    await store.stop()
  }
  t.teardown(close)
  const ended = (id: string) =>
    until(
      () => jobs.get(id, ADMIN),
      ({ ended }) => ended !== null,
      `the end of job ${id}`,
    )
  return { folder, jobs, events, close, ended }
}

/** Work that lasts until it is told to end. */
function lasting({ signal }: JobContext): Promise<never> {
  return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('told to end'))))
}

t.test('a job tells its progress and its result; another of its kind waits for nobody and is refused', async (t) => {
  const { jobs, events, ended } = await open(t)
  let finish = () => {}
  const gate = new Promise<void>((resolve) => {
    finish = resolve
  })
  const job = actingAs({ username: 'eve', address: '10.0.0.9' }, () =>
    jobs.begin('counting', async ({ progress }) => {
      progress(0.5, 'half')
      await gate
      return { counted: 7 }
    }),
  )
  t.match(job, { status: 'running', username: 'eve', result: null, ended: null })
  await until(
    () => jobs.get(job.id, ADMIN).progress,
    (progress) => progress === 0.5,
    'progress',
  )
  t.throws(() => jobs.begin('counting', lasting), { code: 'CONFLICT', details: `job ${job.id}` })
  const other = jobs.begin('something else', async () => undefined)
  finish()
  t.match(await ended(job.id), { status: 'succeeded', progress: 1, message: 'half', result: { counted: 7 }, error: null })
  t.match(await ended(other.id), { status: 'succeeded', result: null })
  t.equal(jobs.begin('counting', async () => 1).status, 'running', 'the next one may begin')
  const told = events.filter(({ data }) => data.job_id === job.id).map(({ type }) => type)
  t.same(told, ['started', 'progress', 'succeeded'])
})

t.test('what fails says why: a known error with its code, any other with an id and nothing of its text', async (t) => {
  const { jobs, ended } = await open(t)
  const known = jobs.begin('known', () => Promise.reject(new ApiError('INSUFFICIENT_STORAGE', 'full', 'disk')))
  const unknown = jobs.begin('unknown', () => Promise.reject(new Error('/secret/path')))
  t.match(await ended(known.id), { status: 'failed', error: { code: 'INSUFFICIENT_STORAGE', message: 'full', details: 'disk' } })
  const { error } = await ended(unknown.id)
  t.equal(error?.code, 'INTERNAL_ERROR')
  t.notMatch(JSON.stringify(error), /secret/)
})

t.test('cancelling ends the work; so does its time limit', async (t) => {
  const { jobs, ended } = await open(t)
  const job = jobs.begin('long', lasting)
  t.match(await jobs.cancel(job.id, ADMIN), { status: 'cancelled', error: { message: 'The job was cancelled' } })
  await t.rejects(jobs.cancel(job.id, ADMIN), { code: 'CONFLICT' })
  await t.rejects(jobs.cancel('999', ADMIN), { code: 'NOT_FOUND' })
  const slow = jobs.begin('long', lasting, { limitMs: 20 })
  t.match(await ended(slow.id), { status: 'failed', error: { details: 'time limit' } })
})

t.test('jobs that the end of the server cut off are interrupted, also when it was killed', async (t) => {
  const first = await open(t)
  const ended = first.jobs.begin('ended', async () => 'there')
  await first.ended(ended.id)
  const graceful = first.jobs.begin('graceful', lasting)
  // Deaf to its signal: what a kill leaves in the table.
  const killed = first.jobs.begin('killed', () => delay(60_000, undefined, { ref: false }))
  await first.close()
  const { jobs } = await open(t, first.folder)
  t.match(jobs.get(graceful.id, ADMIN), { status: 'interrupted' })
  t.match(jobs.get(killed.id, ADMIN), { status: 'interrupted' })
  t.match(jobs.get(ended.id, ADMIN), { status: 'succeeded', result: 'there' })
  t.equal(jobs.begin('killed', async () => 1).id, '4', 'numbers go on')
})

t.test('the history is bounded, and forgets no running job', async (t) => {
  const { jobs, ended } = await open(t)
  const running = jobs.begin('running', lasting)
  for (let i = 0; i < 15; i++) await ended(jobs.begin('short', async () => i).id)
  const { total, jobs: all } = jobs.list(ADMIN, ALL)
  t.equal(total, 11, 'ten and the running one')
  t.equal(all.at(0)?.result, 14)
  t.equal(all.at(-1)?.id, running.id)
  t.equal(jobs.list(ADMIN, { limit: 1, offset: 1 }).jobs.at(0)?.result, 13)
})

t.test('a job is seen by those who might have started it, and by the limited only when it is their own', async (t) => {
  const { jobs } = await open(t)
  const begin = (role: 'operator' | 'admin') =>
    actingAs({ username: 'eve', address: '::1' }, () => jobs.begin(role, lasting, { role }))
  const operators = begin('operator')
  const admins = begin('admin')
  const eve: Caller = { ...ADMIN, username: 'eve', role: 'operator' }
  t.same(
    jobs.list(eve, ALL).jobs.map(({ id }) => id),
    [operators.id],
  )
  t.throws(() => jobs.get(admins.id, eve), { code: 'NOT_FOUND' })
  await t.rejects(jobs.cancel(admins.id, eve), { code: 'NOT_FOUND' })
  t.equal(jobs.list({ ...eve, cameras: [1] }, ALL).total, 1, 'his own')
  t.equal(jobs.list({ ...eve, username: 'mallory', cameras: [1] }, ALL).total, 0)
  t.equal(jobs.list({ ...eve, role: 'viewer' }, ALL).total, 0)
})
