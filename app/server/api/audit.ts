/** The audit log, for admins. */
import { Type } from '@sinclair/typebox'
import type { AuditLog } from '../audit/index.ts'
import { type Route, route } from '../http/index.ts'
import type { JobContext, Jobs } from '../jobs/index.ts'
import { JobStarted, jobStarted } from './jobs.ts'
import { closed, Nullable, Page } from './schemas.ts'

const EpochMs = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'epoch milliseconds' })

const Entry = Type.Object({
  seq: Type.Integer(),
  timestamp: Type.String(),
  username: Nullable(Type.String({ description: 'null: the device itself' })),
  address: Nullable(Type.String()),
  action: Type.String({ examples: ['auth.login', 'recording.deleted'] }),
  data: Type.Object({}, { additionalProperties: true }),
  previous: Type.String({ description: 'hash of the entry before' }),
  hash: Type.String({ description: 'SHA-256 over the entry and the hash before it' }),
})

export function auditRoutes(audit: AuditLog, jobs: Jobs): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/audit',
      access: 'admin',
      rate: 'api',
      tag: 'Audit',
      summary: 'Who did what from where, newest first',
      query: Type.Object(
        {
          ...Page,
          username: Type.Optional(Type.String({ maxLength: 64 })),
          action: Type.Optional(Type.String({ maxLength: 64, description: 'an action or its category' })),
          from: Type.Optional(EpochMs),
          to: Type.Optional(EpochMs),
        },
        closed,
      ),
      response: Type.Object({
        entries: Type.Array(Entry),
        total: Type.Integer(),
        limit: Type.Integer(),
        offset: Type.Integer(),
      }),
      handler: async ({ query, signal }) => {
        const page = { limit: query.limit ?? 100, offset: query.offset ?? 0 }
        return { ...(await audit.list({ ...query, ...page }, signal)), ...page }
      },
    }),
    route({
      method: 'POST',
      path: '/api/audit/verify',
      access: 'admin',
      rate: 'api',
      tag: 'Audit',
      summary: 'Check the hash chain of the whole log',
      description:
        "The job's result: `entries`, and `broken_at`, the number of the first entry that does not hold, null when all do.",
      response: JobStarted,
      errors: ['CONFLICT'],
      handler: () => {
        const work = ({ progress, signal }: JobContext) => audit.verify(progress, signal)
        return jobStarted(jobs.begin('audit_verify', work, { role: 'admin' }))
      },
    }),
  ]
}
