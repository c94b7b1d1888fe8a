/** What the server grants its clients on the network. Ports and addresses are options of the process: they hold while it runs. */
import { type Static, Type } from '@sinclair/typebox'

export const Network = Type.Object({
  max_connections: Type.Integer({
    minimum: 10,
    maximum: 10_000,
    default: 256,
    description: 'HTTP requests under way at the same time, over all clients; more are answered 503, health excepted',
  }),
  max_websockets: Type.Integer({
    minimum: 1,
    maximum: 10_000,
    default: 200,
    description: 'open WebSockets at the same time; more are refused, those that are open stay',
  }),
  rtsp_max_connections: Type.Integer({
    minimum: 1,
    maximum: 1000,
    default: 10,
    description: 'RTSP connections at the same time; a change acts on new connections',
  }),
})
export type Network = Static<typeof Network>
