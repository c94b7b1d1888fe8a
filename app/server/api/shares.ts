/** Share links: made by operators for people without an account. */
import { Type } from '@sinclair/typebox'
import type { Auth } from '../auth/index.ts'
import type { Cameras } from '../cameras/index.ts'
import { InvalidRequest } from '../errors.ts'
import { type Route, route } from '../http/index.ts'
import type { Recorder } from '../recording/index.ts'
import { allowedCamera, allowedRecording, required } from './access.ts'
import { CameraId, closed, Enum, Nullable, Page, Success } from './schemas.ts'
import { requester } from './users.ts'

const KINDS = ['still', 'stream', 'recording'] as const

const Share = Type.Object({
  id: Type.String(),
  kind: Enum(KINDS),
  camera: Type.Integer(),
  recording_id: Nullable(Type.Integer()),
  note: Type.String(),
  created_by: Type.String(),
  created_at: Type.String(),
  expires_at: Type.String(),
  rtsp_user: Nullable(Type.String({ description: 'for `stream`: the name that goes with the token as password' })),
})

export function shareRoutes(auth: Auth, cameras: Cameras, recorder: Recorder): Route[] {
  const shared = { access: 'operator', rate: 'api', tag: 'Share links' } as const
  const target = (recordingId: number | undefined) => {
    if (recordingId === undefined) throw new InvalidRequest('body.recording_id', 'A shared recording needs its id')
    return recorder.library.row(recordingId)
  }
  return [
    route({
      ...shared,
      method: 'POST',
      path: '/api/shares',
      summary: 'Make a link that opens one still, stream or recording',
      description:
        'The token is shown this once. It goes into `token=` or `Authorization: Bearer`; for a stream it is the RTSP password of `rtsp_user`. It opens nothing else, and no longer than whoever made it could.',
      body: Type.Object(
        {
          camera: Type.Optional(CameraId),
          kind: Enum(KINDS),
          recording_id: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
          expires_in_seconds: Type.Integer({ minimum: 60, maximum: 2_592_000 }),
          note: Type.Optional(Type.String({ maxLength: 200 })),
        },
        closed,
      ),
      response: Type.Intersect([Share, Type.Object({ success: Type.Boolean(), token: Type.String() })]),
      errors: ['NOT_FOUND', 'CONFLICT'],
      handler: ({ body, caller, address }) => {
        const { kind, recording_id: wanted, expires_in_seconds: seconds, note = '' } = body
        if (kind !== 'recording' && wanted !== undefined) throw new InvalidRequest('body.recording_id', 'Only for kind recording')
        const row = kind === 'recording' ? allowedRecording(caller, target(wanted)) : null
        if (row && body.camera !== undefined && body.camera !== row.camera) {
          throw new InvalidRequest('body.camera', 'The recording is of another camera')
        }
        const camera = row?.camera ?? cameras.view(allowedCamera(caller, body.camera, cameras.active)).id
        const share = { kind, camera, recording: row?.id ?? null, note, seconds }
        const { token, record } = auth.shares.create(requester(caller, address), share)
        return { success: true, token, ...viewOf(record) }
      },
    }),
    route({
      ...shared,
      method: 'GET',
      path: '/api/shares',
      summary: 'Share links in force: the own ones; for admins all',
      query: Type.Object(Page, closed),
      response: Type.Object({
        shares: Type.Array(Share),
        total: Type.Integer(),
        limit: Type.Integer(),
        offset: Type.Integer(),
      }),
      handler: ({ query, caller }) => {
        const { limit = 100, offset = 0 } = query
        const { role, username } = required(caller)
        const all = auth.shares.list(role === 'admin' ? undefined : username)
        return { shares: all.slice(offset, offset + limit).map(viewOf), total: all.length, limit, offset }
      },
    }),
    route({
      ...shared,
      method: 'DELETE',
      path: '/api/shares/{id}',
      summary: 'Revoke a share link at once',
      params: Type.Object({ id: Type.String({ minLength: 1, maxLength: 64 }) }),
      response: Success,
      errors: ['NOT_FOUND'],
      handler: ({ params, caller, address }) => {
        auth.shares.revoke(requester(caller, address), params.id, caller?.role === 'admin')
        return { success: true }
      },
    }),
  ]
}

function viewOf(share: ReturnType<Auth['shares']['list']>[number]) {
  const { id, kind, camera, recording, note, created_by } = share
  const [created_at, expires_at] = [share.created_at, share.expires_at].map((time) => new Date(time).toISOString())
  const rtsp_user = kind === 'stream' ? `share-${id}` : null
  return { id, kind, camera, recording_id: recording, note, created_by, created_at, expires_at, rtsp_user }
}
