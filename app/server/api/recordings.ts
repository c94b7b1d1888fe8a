/** The catalogue: list, download, all that is known, delete. */
import { type Static, Type } from '@sinclair/typebox'
import { ApiError, InvalidRequest, NotFound } from '../errors.ts'
import { FileReply, type Route, route } from '../http/index.ts'
import {
  MEDIA_STATES,
  MEDIA_TYPES,
  type Position,
  type Recorder,
  type RecordingRow,
  type Search,
  SORTS,
  VIDEO_TYPES,
} from '../recording/index.ts'
import { allowedRecording, required } from './access.ts'
import { closed, Enum, Nullable, Page, Success } from './schemas.ts'

const Entry = {
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
  videoCodec: Nullable(Type.String()),
  audioCodec: Nullable(Type.String()),
  trigger: Type.String({ description: 'manual, schedule, motion or alert' }),
  partCount: Type.Integer({ description: 'files that it consists of' }),
}

const Info = Type.Object({
  ...Entry,
  parts: Type.Array(
    Type.Object({
      part: Type.Integer({ description: 'from 1' }),
      filename: Type.String(),
      path: Type.String(),
      durationMs: Type.Integer(),
      size: Type.Integer(),
      sha256: Nullable(Type.String()),
    }),
  ),
  timeSynced: Type.Boolean({ description: 'false: the clock had not been set yet when it started' }),
  bootId: Type.String(),
  createdBy: Nullable(Type.String()),
})

const EpochMs = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'epoch milliseconds' })
const Text = Type.String({ minLength: 1, maxLength: 200 })
const Mode = Enum([...MEDIA_TYPES, 'all'], 'moving pictures (video, timelapse, slowmotion) when absent')
export const RecordingId = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })

const ListQuery = Type.Object(
  {
    ...Page,
    from: Type.Optional(EpochMs),
    to: Type.Optional(EpochMs),
    state: Type.Optional(Enum(MEDIA_STATES)),
    mode: Type.Optional(Mode),
    media_type: Type.Optional(Mode),
    camera: Type.Optional(Type.Integer({ minimum: 0, maximum: 255 })),
    tagged: Type.Optional(Type.Boolean()),
    tag: Type.Optional(Type.String({ ...Text, description: 'name of a category, or part of the title of a tag' })),
    text: Type.Optional(Type.String({ ...Text, description: 'part of the file name, or of the title or note of a tag' })),
    sort: Type.Optional(Enum(SORTS)),
    cursor: Type.Optional(Type.String({ maxLength: 64, description: '`next_cursor` of the page before; instead of `offset`' })),
  },
  closed,
)

const TYPES: Readonly<Record<RecordingRow['encoding'], string>> = {
  mp4: 'video/mp4',
  avi: 'video/x-msvideo',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  png: 'image/png',
}

export function recordingsRoutes(recorder: Recorder, search: Search): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/recordings',
      access: 'viewer',
      rate: 'api',
      tag: 'Recordings',
      summary: 'List recordings, newest first',
      description:
        'Those that touch the time from `from` to `to`. `tag` and `text` look at 20000 entries in one request: then `total_exact` is false, `total` is what was found so far, and `next_cursor` goes on from there. By size and duration at most 20000 entries are sorted.',
      query: ListQuery,
      response: Type.Object({
        recordings: Type.Array(Type.Object(Entry)),
        total: Type.Integer(),
        total_exact: Type.Boolean(),
        next_cursor: Nullable(Type.String()),
        limit: Type.Integer(),
        offset: Type.Integer(),
      }),
      errors: ['SERVICE_UNAVAILABLE'],
      handler: async ({ query, caller, signal }) => {
        const { limit = 100, offset = 0 } = query
        const { rows, total, exact, next } = await search.find(searchOf(query, required(caller).cameras), signal)
        const next_cursor = next && cursorOf(next)
        return { recordings: rows.map(entryOf), total, total_exact: exact, next_cursor, limit, offset }
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
      params: Type.Object({ id: RecordingId }),
      query: Type.Object(
        {
          download: Type.Optional(Type.Boolean({ description: 'true: as an attachment' })),
          part: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'which file of it; 1 when absent' })),
        },
        closed,
      ),
      response: { binary: 'video/mp4', file: true },
      errors: ['NOT_FOUND', 'FILE_NOT_FOUND', 'RECORDING_IN_PROGRESS', 'RANGE_NOT_SATISFIABLE'],
      handler: ({ params, query, caller }) => {
        const row = allowedRecording(caller, recorder.library.row(params.id))
        if (row.state === 'recording') {
          throw new ApiError('RECORDING_IN_PROGRESS', 'This recording is still running', `recording ${row.id}`)
        }
        const part = row.parts[(query.part ?? 1) - 1]
        if (!part) throw new NotFound(`part ${query.part} of recording ${row.id}`)
        const options = { filename: part.filename, attachment: query.download === true }
        return new FileReply(recorder.library.hostPath(part), TYPES[row.encoding], options)
      },
    }),
    route({
      method: 'GET',
      path: '/api/recordings/{id}/info',
      access: 'viewer',
      rate: 'api',
      tag: 'Recordings',
      summary: 'All that is known of a recording',
      params: Type.Object({ id: RecordingId }),
      response: Info,
      errors: ['NOT_FOUND'],
      handler: ({ params, caller }) => infoOf(allowedRecording(caller, recorder.library.row(params.id))),
    }),
    route({
      method: 'DELETE',
      path: '/api/recordings/{id}',
      access: 'operator',
      rate: 'file',
      tag: 'Recordings',
      summary: 'Delete a recording with its files and tags',
      params: Type.Object({ id: RecordingId }),
      response: Success,
      errors: ['NOT_FOUND', 'RECORDING_IN_PROGRESS', 'SERVICE_UNAVAILABLE'],
      handler: async ({ params, caller }) => {
        allowedRecording(caller, recorder.library.row(params.id))
        await recorder.library.remove(params.id)
        return { success: true }
      },
    }),
  ]
}

/** What the catalogue is asked: the request's filters within what the caller may see. */
function searchOf(query: Static<typeof ListQuery>, cameras: readonly number[] | null): Parameters<Search['find']>[0] {
  const { mode, media_type, camera, cursor, limit = 100, offset = 0, ...filter } = query
  if (cursor !== undefined && offset > 0) throw new InvalidRequest('query.offset', 'A cursor has no offset')
  const type = media_type ?? mode
  const types = type === undefined ? VIDEO_TYPES : type === 'all' ? MEDIA_TYPES : [type]
  const seen = camera === undefined ? cameras : cameras === null || cameras.includes(camera) ? [camera] : []
  return { ...filter, limit, offset, types, cameras: seen, ...(cursor === undefined ? {} : { after: placeOf(cursor) }) }
}

function cursorOf(place: Position): string {
  return Buffer.from(place.join('.')).toString('base64url')
}

function placeOf(cursor: string): Position {
  const match = /^(\d{1,15})\.(\d{1,15})\.(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString())
  if (!match) throw new InvalidRequest('query.cursor', 'This is no cursor of a list')
  return [Number(match[1]), Number(match[2]), Number(match[3])]
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
    videoCodec: row.video_codec,
    audioCodec: row.audio_codec,
    trigger: row.trigger,
    partCount: row.parts.length,
  }
}

function infoOf(row: RecordingRow): Static<typeof Info> {
  const parts = row.parts.map(({ filename, path, duration, size, sha256 }, n) => {
    return { part: n + 1, filename, path, durationMs: duration, size, sha256 }
  })
  return { ...entryOf(row), parts, timeSynced: row.time_synced, bootId: row.boot_id, createdBy: row.created_by }
}
