/** What the operations of the network take and answer. */
import { Type } from '@sinclair/typebox'
import { SELF_TEST_STEPS } from '../network/index.ts'
import { closed, Enum, Nullable } from './schemas.ts'

const LINK_TYPES = ['ethernet', 'wifi', 'loopback', 'other'] as const
const METHODS = ['dhcp', 'static'] as const

const Count = Nullable(Type.Integer())
const Address = Type.Object({
  address: Type.String(),
  prefix: Type.Integer(),
  origin: Nullable(Enum(['dhcp', 'static', 'link-local', 'router'], '`router`: advertised by one; null: not known')),
})
const Trial = Type.Object({
  expires: Type.String({ format: 'date-time', description: 'taken back then unless it is confirmed' }),
})
export const Interface = Type.Object({
  name: Type.String({ examples: ['eth0'] }),
  type: Enum(LINK_TYPES),
  mac: Nullable(Type.String()),
  state: Type.String({ description: "the kernel's word: up, down, dormant, …" }),
  carrier: Nullable(Type.Boolean({ description: 'null: the interface is switched off' })),
  speed_mbps: Nullable(Type.Integer()),
  mtu: Nullable(Type.Integer()),
  ipv4: Type.Array(Address),
  ipv6: Type.Array(Address),
  gateway: Nullable(Type.String()),
  ipv6_gateway: Nullable(Type.String()),
  dns: Type.Array(Type.String()),
  method: Nullable(Enum(METHODS, 'null: not known')),
  statistics: Type.Object({
    rx_bytes: Count,
    tx_bytes: Count,
    rx_packets: Count,
    tx_packets: Count,
    rx_errors: Count,
    tx_errors: Count,
    rx_dropped: Count,
    tx_dropped: Count,
  }),
  trial: Nullable(Trial),
})
const DefaultRoute = Nullable(Type.Object({ interface: Type.String(), gateway: Type.String(), metric: Type.Integer() }))
const Ports = Type.Object({
  http: Type.Array(Type.Integer()),
  https: Type.Array(Type.Integer()),
  dashboard: Type.Array(Type.Integer()),
  rtsp: Type.Array(Type.Integer()),
  rtsps: Type.Array(Type.Integer()),
})
export const Config = Type.Object({
  hostname: Type.String(),
  mdns_name: Nullable(Type.String({ description: 'null: nobody answers to the name' })),
  dns_servers: Type.Array(Type.String()),
  default_route: DefaultRoute,
  ipv6_default_route: DefaultRoute,
  interfaces: Type.Record(
    Type.String(),
    Type.Object({
      method: Nullable(Enum(METHODS)),
      ip_address: Nullable(Type.String()),
      netmask: Nullable(Type.String()),
      prefix: Nullable(Type.Integer()),
      gateway: Nullable(Type.String()),
      dns_servers: Type.Array(Type.String()),
      trial: Nullable(Trial),
    }),
    { description: 'by name, all but the loopback one' },
  ),
  ports: Ports,
})

export const Name = Type.Object({ name: Type.String({ maxLength: 32, examples: ['eth0'] }) })
const Text = Nullable(Type.String({ maxLength: 64 }))
export const Change = Type.Object(
  {
    method: Enum(METHODS),
    ip_address: Type.Optional(Nullable(Type.String({ maxLength: 64, examples: ['192.168.1.20'] }))),
    netmask: Type.Optional(
      Type.Union([Type.String({ maxLength: 64 }), Type.Integer({ minimum: 0, maximum: 32 }), Type.Null()], {
        description: 'a mask or the length of a prefix',
        examples: ['255.255.255.0', 24],
      }),
    ),
    gateway: Type.Optional(Text),
    dns_servers: Type.Optional(Nullable(Type.Array(Type.String({ maxLength: 64 }), { maxItems: 4 }))),
  },
  closed,
)
export const Announced = Type.Object({
  success: Type.Boolean(),
  interface: Type.String(),
  method: Enum(METHODS),
  reconnect_to: Nullable(Type.String({ description: 'the address to confirm over; null: what the DHCP server gives' })),
  reconnect_name: Nullable(
    Type.String({ description: 'the name that finds the device in the local network whatever its address' }),
  ),
  confirm_within_seconds: Type.Integer(),
  confirm: Type.String({ description: 'what to POST to, there' }),
})
const Step = Type.Object({
  name: Enum(SELF_TEST_STEPS),
  status: Enum(['ok', 'failed', 'unknown']),
  ms: Type.Number(),
  details: Type.String(),
})
export const Report = Type.Object({
  success: Type.Boolean({ description: 'nothing failed but the internet perhaps' }),
  duration_ms: Type.Integer(),
  tests: Type.Array(Step),
})
