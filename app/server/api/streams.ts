/** Which streams there are, what they cost, and who watches. */
import { Type } from '@sinclair/typebox'
import { seesCamera } from '../caller.ts'
import type { Cameras } from '../cameras/index.ts'
import { type Route, route } from '../http/index.ts'
import type { ClientStats, MediaSupervisor, StreamStats } from '../media/index.ts'
import { required } from './access.ts'
import { Nullable } from './schemas.ts'

const Client = Type.Object({
  id: Type.Integer(),
  address: Type.String(),
  user: Nullable(Type.String()),
  transport: Nullable(Type.String({ description: '`tcp` or `udp`' })),
  connected_ms: Type.Integer(),
  bytes: Type.Integer(),
  packets: Type.Integer(),
  frames_dropped: Type.Integer(),
  packets_lost: Nullable(Type.Integer()),
  fraction_lost: Nullable(Type.Number()),
  jitter_ms: Nullable(Type.Number()),
})

const Stream = Type.Object({
  camera: Type.Integer(),
  name: Type.String(),
  path: Type.String({ description: 'below rtsp://<host>:<rtsp_port>' }),
  active: Type.Boolean({ description: 'somebody consumes it' }),
  resolution: Type.String(),
  fps: Type.Integer(),
  encoder: Nullable(Type.String()),
  passthrough: Type.Boolean(),
  consumers: Type.Integer(),
  bitrate_kbps: Nullable(Type.Number()),
  encode_time_us: Nullable(Type.Number()),
  frames_encoded: Type.Integer(),
  frames_dropped: Type.Integer(),
  bytes: Type.Integer(),
  audio: Nullable(Type.String({ description: '`aac`, `opus` or `pcmu`; null: pictures alone' })),
  clients: Type.Array(Client),
})

export function streamsRoutes(cameras: Cameras, media: MediaSupervisor): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/streams',
      access: 'viewer',
      rate: 'api',
      tag: 'Streaming',
      summary: 'Streams, their counters and their clients',
      response: Type.Object({
        rtsp_port: Type.Integer(),
        rtsps_port: Type.Integer(),
        encoder: Nullable(Type.String()),
        streams: Type.Array(Stream),
        total: Type.Integer(),
      }),
      errors: ['CAMERA_NOT_CONNECTED'],
      handler: async ({ caller }) => {
        const { cameras: all, clients } = await cameras.stats()
        const list = all.filter(({ id }) => seesCamera(required(caller), id))
        const streams = list.flatMap(({ id, streams }) => streams.map((stream) => streamOf(id, stream, clients, cameras.active)))
        return {
          rtsp_port: media.rtspPorts.plain,
          rtsps_port: media.rtspPorts.tls,
          encoder: media.info?.encoder ?? null,
          streams,
          total: streams.length,
        }
      },
    }),
  ]
}

function streamOf(camera: number, stream: StreamStats, clients: readonly ClientStats[], active: number) {
  const { name, width, height, ...rest } = stream
  const own = clients.filter((client) => client.camera === camera && client.stream === name)
  return {
    ...rest,
    camera,
    name,
    path: camera === active ? `/${name}` : `/cam/${camera}/${name}`,
    active: stream.consumers > 0,
    resolution: `${width}x${height}`,
    clients: own.map(({ camera: _camera, stream: _stream, ...client }) => client),
  }
}
