/** The catalogue: list, download, delete. */
import { Type } from '@sinclair/typebox'
import { ApiError } from '../errors.ts'
import { FileReply, type Route, route } from '../http/index.ts'
import { MEDIA_STATES, type Recorder, type RecordingRow } from '../recording/index.ts'
import { allowedRecording, required } from './access.ts'
import { closed, Enum, Page, Success } from './schemas.ts'

const Recording = Type.Object({
  id: Type.Integer(),
  mediaType: Type.String(),
  mediaEncoding: Type.String(),
  timestampStartMs: Type.Integer(),
  timestampEndMs: Type.Integer(),
  durationMs: Type.Integer(),
  size: Type.Integer({ description: 'bytes' }),
  filename: Type.String(),
  resolution: Type.String(),
  fps: Type.Number(),
  state: Enum(MEDIA_STATES),
  tagMarkers: Type.Integer(),
  path: Type.String({ description: 'on the device storage' }),
  camera: Type.Integer(),
})

const EpochMs = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'epoch milliseconds' })
const RecordingId = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) })
const MIME: Partial<Record<RecordingRow['encoding'], string>> = { mp4: 'video/mp4', avi: 'video/x-msvideo' }

export function recordingsRoutes(recorder: Recorder): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/recordings',
      access: 'viewer',
      rate: 'api',
      tag: 'Recordings',
      summary: 'List recordings, newest first',
      query: Type.Object(
        {
          ...Page,
          state: Type.Optional(Enum(MEDIA_STATES)),
          from: Type.Optional(EpochMs),
          to: Type.Optional(EpochMs),
        },
        closed,
      ),
      response: Type.Object({
        recordings: Type.Array(Recording),
        total: Type.Integer(),
        limit: Type.Integer(),
        offset: Type.Integer(),
      }),
      handler: ({ query, caller }) => {
        const page = { limit: query.limit ?? 100, offset: query.offset ?? 0 }
        const { rows, total } = recorder.list({ ...query, ...page, cameras: required(caller).cameras })
        return { recordings: rows.map(entryOf), total, ...page }
      },
    }),
    route({
      method: 'GET',
      path: '/api/recordings/{id}',
      access: 'viewer',
      rate: 'file',
      tag: 'Recordings',
      summary: 'Download or play a recording (Range is honoured)',
      share: 'recording',
      params: RecordingId,
      query: Type.Object({ download: Type.Optional(Type.Boolean({ description: 'true: as an attachment' })) }, closed),
      response: { binary: 'video/mp4' },
      errors: ['NOT_FOUND', 'FILE_NOT_FOUND', 'RECORDING_IN_PROGRESS', 'RANGE_NOT_SATISFIABLE'],
      handler: ({ params, query, caller }) => {
        const row = allowedRecording(caller, recorder.row(params.id))
        if (row.state === 'recording') {
          throw new ApiError('RECORDING_IN_PROGRESS', 'This recording is still running', `recording ${row.id}`)
        }
        const type = MIME[row.encoding] ?? 'application/octet-stream'
        return new FileReply(recorder.hostPath(row), type, { filename: row.filename, attachment: query.download === true })
      },
    }),
    route({
      method: 'DELETE',
      path: '/api/recordings/{id}',
      access: 'operator',
      rate: 'file',
      tag: 'Recordings',
      summary: 'Delete a recording and its file',
      params: RecordingId,
      response: Success,
      errors: ['NOT_FOUND', 'RECORDING_IN_PROGRESS'],
      handler: async ({ params, caller }) => {
        allowedRecording(caller, recorder.row(params.id))
        await recorder.remove(params.id)
        return { success: true }
      },
    }),
  ]
}

function entryOf(row: RecordingRow) {
  return {
    id: row.id,
    mediaType: row.media_type,
    mediaEncoding: row.encoding,
    timestampStartMs: row.timestamp_start,
    timestampEndMs: row.timestamp_end,
    durationMs: row.duration,
    size: row.size,
    filename: row.filename,
    resolution: row.resolution,
    fps: row.fps,
    state: row.state,
    tagMarkers: row.tag_markers,
    path: row.path,
    camera: row.camera,
  }
}
