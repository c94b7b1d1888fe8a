/** Tags of recordings: set on the running one or on any, listed, changed, removed. */
import { Type } from '@sinclair/typebox'
import type { Cameras } from '../cameras/index.ts'
import { InvalidRequest } from '../errors.ts'
import { type Route, route } from '../http/index.ts'
import type { Recorder, Tag, Tags } from '../recording/index.ts'
import { allowedCamera, allowedRecording } from './access.ts'
import { RecordingId } from './recordings.ts'
import { CameraId, closed, Success } from './schemas.ts'

const Fields = {
  category: Type.String({ minLength: 1, maxLength: 64, description: 'name of a category', examples: ['event'] }),
  title: Type.String({ minLength: 1, maxLength: 200 }),
  note: Type.String({ maxLength: 4000 }),
  timestamp: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'milliseconds into the recording' }),
}

const TagView = Type.Object({
  id: Type.Integer(),
  category: Type.Integer({ description: 'id of the category' }),
  timestamp: Type.Integer({ description: 'milliseconds into the recording' }),
  title: Type.String(),
  note: Type.String(),
  createdBy: Type.String(),
})

const TagParams = Type.Object({ id: RecordingId, tag_id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) })

export function tagRoutes(recorder: Recorder, cameras: Cameras, tags: Tags): Route[] {
  const shared = { rate: 'api', tag: 'Tags' } as const
  return [
    route({
      ...shared,
      method: 'POST',
      path: '/api/recording/tag',
      access: 'operator',
      summary: 'Mark the running recording, or the one that is named',
      body: Type.Object(
        {
          category: Fields.category,
          title: Fields.title,
          note: Type.Optional(Fields.note),
          timestamp: Type.Optional(
            Type.Integer({ ...Fields.timestamp, description: 'milliseconds into the recording; now when absent, while it runs' }),
          ),
          recording_id: Type.Optional(
            Type.Union([RecordingId, Type.String({ pattern: '^[1-9][0-9]{0,15}$' })], {
              description: 'the running one when absent',
            }),
          ),
          camera: Type.Optional(CameraId),
        },
        closed,
      ),
      response: Type.Object({ success: Type.Boolean(), tag: TagView }),
      errors: ['CONFLICT', 'NOT_FOUND'],
      handler: ({ body, caller }) => {
        const { camera, recording_id, note = '', timestamp, ...rest } = body
        const marked = { ...rest, note, createdBy: caller?.username ?? '' }
        if (recording_id === undefined) {
          const running = allowedCamera(caller, camera, cameras.active)
          const tag = recorder.tag(running, { ...marked, ...(timestamp === undefined ? {} : { timestamp }) })
          return { success: true, tag }
        }
        const row = allowedRecording(caller, recorder.library.row(Number(recording_id)))
        if (camera !== undefined && camera !== row.camera) {
          throw new InvalidRequest('body.camera', 'The recording is of another camera')
        }
        const at = timestamp ?? elapsedOf(recorder, row)
        return { success: true, tag: tags.add(row, { ...marked, timestamp: at }) }
      },
    }),
    route({
      ...shared,
      method: 'GET',
      path: '/api/recordings/{id}/tags',
      access: 'viewer',
      summary: 'The tags of a recording, in the order of its timeline',
      params: Type.Object({ id: RecordingId }),
      response: Type.Object({ tags: Type.Array(TagView), total: Type.Integer() }),
      errors: ['NOT_FOUND'],
      handler: ({ params, caller }): { tags: Tag[]; total: number } => {
        const found = tags.list(allowedRecording(caller, recorder.library.row(params.id)).id)
        return { tags: found, total: found.length }
      },
    }),
    route({
      ...shared,
      method: 'PUT',
      path: '/api/recordings/{id}/tags/{tag_id}',
      access: 'operator',
      summary: 'Change a tag',
      params: TagParams,
      body: Type.Partial(Type.Object(Fields, closed), { ...closed, minProperties: 1 }),
      response: Type.Object({ success: Type.Boolean(), tag: TagView }),
      errors: ['NOT_FOUND'],
      handler: ({ params, body, caller }) => {
        const { id } = allowedRecording(caller, recorder.library.row(params.id))
        return { success: true, tag: tags.change(id, params.tag_id, body) }
      },
    }),
    route({
      ...shared,
      method: 'DELETE',
      path: '/api/recordings/{id}/tags/{tag_id}',
      access: 'operator',
      summary: 'Remove a tag',
      params: TagParams,
      response: Success,
      errors: ['NOT_FOUND'],
      handler: ({ params, caller }) => {
        tags.remove(allowedRecording(caller, recorder.library.row(params.id)).id, params.tag_id)
        return { success: true }
      },
    }),
  ]
}

/** How far a running recording is. */
function elapsedOf(recorder: Recorder, { id, camera }: { id: number; camera: number }): number {
  const { row, elapsedMs } = recorder.status(camera)
  if (row?.id !== id) throw new InvalidRequest('body.timestamp', 'A recording that does not run needs a timestamp')
  return Math.round(elapsedMs)
}
