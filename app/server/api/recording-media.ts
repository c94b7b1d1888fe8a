/** What can be made of a finished recording: a still, and a range of it as a file of its own. */
import { Type } from '@sinclair/typebox'
import { ApiError } from '../errors.ts'
import { sanitiseStem } from '../files/index.ts'
import { BytesReply, type Route, route } from '../http/index.ts'
import type { Jobs } from '../jobs/index.ts'
import { type Exports, isPlayable, type Recorder, type RecordingRow, type Thumbnails } from '../recording/index.ts'
import { allowedRecording } from './access.ts'
import { JobStarted, jobStarted } from './jobs.ts'
import { RecordingId } from './recordings.ts'
import { closed } from './schemas.ts'

const Params = Type.Object({ id: RecordingId }, closed)
const Position = Type.Integer({ minimum: 0, maximum: 31_536_000_000, description: 'milliseconds from the start' })
const EXPORT_LIMIT_MS = 60 * 60_000

export function recordingMediaRoutes(recorder: Recorder, thumbnails: Thumbnails, exports: Exports, jobs: Jobs): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/recordings/{id}/thumbnail',
      access: 'viewer',
      rate: 'image',
      tag: 'Recordings',
      summary: 'A still of a recording: the key frame at or before a position',
      params: Params,
      query: Type.Object(
        {
          position_ms: Type.Optional(Position),
          width: Type.Optional(Type.Integer({ minimum: 16, maximum: 1920, default: 320 })),
        },
        closed,
      ),
      response: { binary: 'image/jpeg' },
      errors: ['NOT_FOUND', 'RECORDING_IN_PROGRESS', 'INVALID_FORMAT', 'SERVICE_UNAVAILABLE'],
      handler: async ({ params, query, caller }) => {
        const row = finished(allowedRecording(caller, recorder.library.row(params.id)))
        return new BytesReply(await thumbnails.take(row, query.width ?? 320, query.position_ms), 'image/jpeg')
      },
    }),
    route({
      method: 'POST',
      path: '/api/recordings/{id}/export',
      access: 'operator',
      rate: 'file',
      tag: 'Recordings',
      summary: 'Copy a range of a recording into an MP4 of its own, below /media/data/exports',
      description:
        'A job. The picture is not encoded anew: the copy begins with the key frame at or before `start_ms`. The copy is an entry of mode `backup` of the same camera, kept until it is deleted. The job’s result has `recording_id`, `path`, `filename`, `duration_ms` and `size`.',
      params: Params,
      body: Type.Object(
        {
          start_ms: Type.Optional(Position),
          end_ms: Type.Optional(Position),
          filename: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
        },
        closed,
      ),
      bodyOptional: true,
      response: JobStarted,
      errors: ['NOT_FOUND', 'RECORDING_IN_PROGRESS', 'INVALID_FORMAT', 'INSUFFICIENT_STORAGE', 'CONFLICT'],
      handler: ({ params, body, caller }) => {
        const row = finished(allowedRecording(caller, recorder.library.row(params.id)))
        const range = { startMs: body.start_ms ?? 0, endMs: body.end_ms ?? row.duration }
        if (range.endMs <= range.startMs) throw new ApiError('INVALID_REQUEST', 'The end must be behind the start', 'body.end_ms')
        const stem = sanitiseStem(body.filename ?? `${row.filename.replace(/\.[^.]*$/, '')}_${range.startMs}-${range.endMs}`)
        if (stem === null) throw new ApiError('INVALID_REQUEST', 'The filename has no usable character', 'body.filename')
        exports.check(row, range)
        const job = jobs.begin('export', (context) => exports.run(row, range, stem, context), { limitMs: EXPORT_LIMIT_MS })
        return jobStarted(job)
      },
    }),
  ]
}

function finished(row: RecordingRow): RecordingRow {
  if (row.state === 'recording') {
    throw new ApiError('RECORDING_IN_PROGRESS', 'This recording is still running', `recording ${row.id}`)
  }
  if (!isPlayable(row)) throw new ApiError('INVALID_FORMAT', 'This is no recording that can be played', `recording ${row.id}`)
  return row
}
