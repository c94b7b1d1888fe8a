/** Jobs: what takes longer than a request, followed and cancelled here. */
import { Type } from '@sinclair/typebox'
import { ROLES, type Route, route } from '../http/index.ts'
import { JOB_STATUSES, type Job, type Jobs } from '../jobs/index.ts'
import { required } from './access.ts'
import { closed, Enum, Nullable, Page } from './schemas.ts'

const JobSchema = Type.Object({
  job_id: Type.String(),
  kind: Type.String(),
  status: Enum(JOB_STATUSES, '`interrupted`: the server ended before the job did'),
  progress: Type.Number({ description: 'from 0 to 1' }),
  message: Nullable(Type.String()),
  started: Type.String(),
  ended: Nullable(Type.String()),
  username: Nullable(Type.String({ description: 'who started it; null: the device itself' })),
  role: Enum(ROLES, 'the least role that may see and cancel it'),
  result: Type.Unknown({ description: 'of a job that has succeeded' }),
  error: Nullable(Type.Object({ code: Type.String(), message: Type.String(), details: Type.String() })),
})

/** What an operation answers that has started a job. */
export const JobStarted = Type.Object({
  success: Type.Boolean(),
  job_id: Type.String({ description: 'see GET /api/jobs/{id}' }),
  status: Type.Literal('running'),
})

export function jobStarted({ id }: Job) {
  return { success: true, job_id: id, status: 'running' }
}

const JobId = Type.Object({ id: Type.String({ pattern: '^[1-9]\\d{0,14}$', description: 'a job id' }) }, closed)

export function jobRoutes(jobs: Jobs): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/jobs',
      access: 'viewer',
      rate: 'api',
      tag: 'Jobs',
      summary: 'The running jobs and the last 200, newest first',
      query: Type.Object(Page, closed),
      response: Type.Object({
        jobs: Type.Array(JobSchema),
        total: Type.Integer(),
        limit: Type.Integer(),
        offset: Type.Integer(),
      }),
      handler: ({ query, caller }) => {
        const page = { limit: query.limit ?? 100, offset: query.offset ?? 0 }
        const { jobs: found, total } = jobs.list(required(caller), page)
        return { jobs: found.map(shown), total, ...page }
      },
    }),
    route({
      method: 'GET',
      path: '/api/jobs/{id}',
      access: 'viewer',
      rate: 'api',
      tag: 'Jobs',
      summary: 'One job with its progress or outcome',
      params: JobId,
      response: JobSchema,
      errors: ['NOT_FOUND'],
      handler: ({ params, caller }) => shown(jobs.get(params.id, required(caller))),
    }),
    route({
      method: 'DELETE',
      path: '/api/jobs/{id}',
      access: 'operator',
      rate: 'api',
      tag: 'Jobs',
      summary: 'Cancel a running job',
      description: 'Answers when it has ended, or after two seconds with the status `cancelling` while it cleans up.',
      params: JobId,
      response: JobSchema,
      errors: ['NOT_FOUND', 'CONFLICT'],
      handler: async ({ params, caller }) => shown(await jobs.cancel(params.id, required(caller))),
    }),
  ]
}

function shown({ id, ...job }: Job) {
  return { job_id: id, ...job }
}
