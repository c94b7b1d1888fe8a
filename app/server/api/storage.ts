/** The storage of recordings: verified, recovered, and its copies. */
import { Type } from '@sinclair/typebox'
import { seesCamera } from '../caller.ts'
import { InvalidRequest } from '../errors.ts'
import { type Route, route } from '../http/index.ts'
import type { Jobs } from '../jobs/index.ts'
import { COPY_PLACES, type StorageCare } from '../recording/index.ts'
import { JobStarted, jobStarted } from './jobs.ts'
import { closed, Enum, Nullable } from './schemas.ts'

const LIMIT_MS = 24 * 3_600_000

const PlaceStatus = Type.Object({
  place: Enum(COPY_PLACES),
  path: Nullable(Type.String({ description: 'null: none is set' })),
  present: Type.Boolean({ description: 'whether the medium is there' }),
  queued: Type.Integer({ description: 'recordings that wait to be copied' }),
  copied: Type.Integer({ description: 'recordings that have been' }),
  last_error: Nullable(Type.String()),
  last_error_at: Nullable(Type.String()),
  full: Type.Boolean({ description: 'the last copy failed because the medium is full' }),
  retry_in_ms: Nullable(Type.Integer()),
})

const Moment = Type.Union([Type.Integer({ minimum: 0, maximum: 8.64e15 }), Type.String({ maxLength: 40 })], {
  description: 'ISO 8601, or epoch milliseconds',
})

export function storageRoutes(care: StorageCare, jobs: Jobs): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/storage/replication',
      access: 'viewer',
      rate: 'api',
      tag: 'Storage',
      summary: 'How the copies of recordings stand',
      response: Type.Object({
        places: Type.Array(PlaceStatus),
        current: Nullable(
          Type.Object({
            recording_id: Type.Integer(),
            camera: Type.Integer(),
            place: Enum(COPY_PLACES),
            filename: Type.String(),
            copied_bytes: Type.Number(),
            total_bytes: Type.Integer(),
          }),
        ),
      }),
      handler: ({ caller }) => {
        const { places, current } = care.replication.status()
        // Users limited to cameras do not hear of the recordings of others.
        return { places, current: current && caller && seesCamera(caller, current.camera) ? current : null }
      },
    }),
    route({
      method: 'POST',
      path: '/api/storage/verify',
      access: 'admin',
      rate: 'api',
      tag: 'Storage',
      summary: 'Compare the catalogue with the files',
      description:
        "The job's result counts and lists (100 of each) recordings whose files are missing or differ, and files that no recording owns. " +
        '`check_integrity` (the default) reads every file and compares its SHA-256; `repair_files` judges defect recordings again and ' +
        'adopts files without an entry. Nothing is deleted.',
      body: Type.Object(
        {
          check_integrity: Type.Optional(Type.Boolean({ default: true })),
          repair_files: Type.Optional(Type.Boolean({ default: false })),
        },
        closed,
      ),
      bodyOptional: true,
      response: JobStarted,
      errors: ['CONFLICT'],
      handler: ({ body }) => {
        const { check_integrity: checkIntegrity = true, repair_files: repair = false } = body
        const job = jobs.begin('storage_verify', (context) => care.verify({ ...context, checkIntegrity, repair }), {
          role: 'admin',
          limitMs: LIMIT_MS,
        })
        return jobStarted(job)
      },
    }),
    route({
      method: 'POST',
      path: '/api/storage/recover',
      access: 'admin',
      rate: 'api',
      tag: 'Storage',
      summary: 'Bring recordings back whose files are missing or damaged',
      description:
        'From the copies on `backup` or `network`, by their checksums; files there that the catalogue does not know are brought back as well. ' +
        '`primary`: from what lies on the medium of the recordings itself. `date_range` limits it to recordings that fall into it.',
      body: Type.Object(
        {
          source: Enum(['primary', ...COPY_PLACES]),
          date_range: Type.Optional(Type.Object({ start: Type.Optional(Moment), end: Type.Optional(Moment) }, closed)),
        },
        closed,
      ),
      response: JobStarted,
      errors: ['CONFLICT'],
      handler: ({ body }) => {
        const from = epochOf(body.date_range?.start, 'start') ?? 0
        const to = epochOf(body.date_range?.end, 'end') ?? Number.MAX_SAFE_INTEGER - 1
        if (from > to) throw new InvalidRequest('body.date_range.end', 'The range ends before it starts')
        const { source } = body
        const job = jobs.begin('storage_recover', (context) => care.recover({ ...context, source, from, to }), {
          role: 'admin',
          limitMs: LIMIT_MS,
        })
        return jobStarted(job)
      },
    }),
  ]
}

function epochOf(moment: number | string | undefined, name: string): number | undefined {
  const time = typeof moment === 'string' ? Date.parse(moment) : moment
  if (Number.isNaN(time)) throw new InvalidRequest(`body.date_range.${name}`, 'This is no ISO 8601 time')
  return time
}
