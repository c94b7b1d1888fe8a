/** The network of the device: what it is, changes that have to prove themselves, and a quick test. */
import { Type } from '@sinclair/typebox'
import { type Route, route } from '../http/index.ts'
import { CONFIRM_WITHIN_SECONDS, type NetworkSelfTest, type NetworkTrials, netmaskText } from '../network/index.ts'
import type { NetworkReader } from '../platform/index.ts'
import { Announced, Change, Config, Interface, Name, Report } from './network-schemas.ts'
import { closed, Success } from './schemas.ts'

export interface NetworkParts {
  readonly network: NetworkReader
  readonly networkTrials: NetworkTrials
  readonly networkTest: NetworkSelfTest
  /** The ports in use by what is served on them. */
  readonly networkPorts: () => Readonly<Record<'http' | 'https' | 'dashboard' | 'rtsp' | 'rtsps', readonly number[]>>
}

const shared = { access: 'admin', rate: 'api', tag: 'Network' } as const
const INTERFACE = '/api/network/interfaces/{name}'

export function networkRoutes(parts: NetworkParts): Route[] {
  return [...reading(parts), ...changing(parts)]
}

function reading(parts: NetworkParts): Route[] {
  return [
    route({
      ...shared,
      method: 'GET',
      path: '/api/network/interfaces',
      summary: 'Every interface with its addresses, state and counters',
      query: Type.Object({ loopback: Type.Optional(Type.Boolean({ description: 'the loopback interface as well' })) }, closed),
      response: Type.Object({ interfaces: Type.Array(Interface) }),
      handler: ({ query }) => {
        const shown = parts.network.interfaces().filter(({ type }) => query.loopback === true || type !== 'loopback')
        return { interfaces: shown.map((one) => ({ ...one, trial: trialOf(parts, one.name) })) }
      },
    }),
    route({
      ...shared,
      method: 'GET',
      path: '/api/network/config',
      summary: 'The configuration in force: interfaces, names, name servers, routes, ports',
      response: Config,
      handler: () => configOf(parts),
    }),
    route({
      ...shared,
      method: 'GET',
      path: '/api/network/test',
      summary: 'A look from the cable outwards: link, address, gateway, name server, internet',
      description:
        'Over within five seconds. The gateway counts as reached where it accepts or refuses a connection, or is a known neighbour. ' +
        'The time server of the device is resolved and asked for the time; another `host` is resolved and connected to on port 443. ' +
        'CONFLICT while a test is running.',
      query: Type.Object(
        {
          host: Type.Optional(
            Type.String({
              maxLength: 253,
              pattern: '^[A-Za-z0-9_.:-]+$',
              description: 'a name or an address',
              examples: ['example.org'],
            }),
          ),
        },
        closed,
      ),
      response: Report,
      errors: ['CONFLICT'],
      handler: ({ query, signal }) => parts.networkTest.run(query.host, signal),
    }),
  ]
}

function changing(parts: NetworkParts): Route[] {
  const { networkTrials: trials } = parts
  return [
    route({
      ...shared,
      method: 'PUT',
      path: INTERFACE,
      summary: 'Give an interface a fixed IPv4 address, or leave it to DHCP; on trial until confirmed',
      description:
        'Checked in full, answered, and then put into force. Within 60 seconds the change has to be confirmed at `confirm`, over the new ' +
        'address; else the device takes it back by itself. A static configuration needs `ip_address` and `netmask`; without `gateway` there ' +
        'is no default route. With DHCP the network gives all other values, and none may be sent. IPv6 configures itself. CONFLICT where ' +
        'the subnet overlaps with that of another interface, or a change of this one is on trial. Events: `config` `network_changed`, ' +
        '`network_confirmed`, `network_reverted` (`reason`: timeout, asked, failed, reset), `network_failed` (it cannot be taken back).',
      params: Name,
      body: Change,
      response: Announced,
      errors: ['NOT_FOUND', 'CONFLICT', 'UNSUPPORTED_SETTING'],
      handler: ({ params, body }) => {
        const plan = trials.change(params.name, body)
        return {
          success: true,
          interface: params.name,
          method: plan.method,
          reconnect_to: plan.method === 'static' ? plan.address : null,
          reconnect_name: parts.network.mdnsName(),
          confirm_within_seconds: CONFIRM_WITHIN_SECONDS,
          confirm: `/api/network/interfaces/${params.name}/confirm`,
        }
      },
    }),
    route({
      ...shared,
      method: 'POST',
      path: `${INTERFACE}/confirm`,
      summary: 'Keep the change that is on trial; or take it back with `confirm` false',
      description:
        'Has to come over the new address: the kernel must know a connection between the host at the other end of this one and the new ' +
        'address (with DHCP: any address that the device has from then on), on a port of this server. The Host header proves nothing. ' +
        'CONFLICT otherwise, and where no change is on trial; the change stays on trial then.',
      params: Name,
      body: Type.Object({ confirm: Type.Optional(Type.Boolean({ default: true })) }, closed),
      bodyOptional: true,
      response: Success,
      errors: ['NOT_FOUND', 'CONFLICT', 'UNSUPPORTED_SETTING', 'SERVICE_UNAVAILABLE'],
      handler: async ({ params, body, peer }) => {
        if (body.confirm === false) await trials.revert(params.name)
        else await trials.confirm(params.name, peer)
        return { success: true }
      },
    }),
    route({
      ...shared,
      method: 'DELETE',
      path: `${INTERFACE}/trial`,
      summary: 'Take the change that is on trial back now, over whatever address',
      params: Name,
      response: Success,
      errors: ['NOT_FOUND', 'CONFLICT', 'UNSUPPORTED_SETTING', 'SERVICE_UNAVAILABLE'],
      handler: async ({ params }) => {
        await trials.revert(params.name)
        return { success: true }
      },
    }),
    route({
      ...shared,
      method: 'POST',
      path: '/api/network/reset',
      summary: 'Back to the factory network: every interface on DHCP, and nothing kept',
      description:
        'Acts when the answer has gone out, and at once for good: there is no trial, and what is on trial ends. Needs no body; `confirm`, ' +
        'where it is sent, must be true.',
      body: Type.Object({ confirm: Type.Optional(Type.Literal(true, { default: true })) }, closed),
      bodyOptional: true,
      response: Success,
      errors: ['CONFLICT', 'UNSUPPORTED_SETTING'],
      handler: () => {
        trials.reset()
        return { success: true }
      },
    }),
    route({
      ...shared,
      method: 'POST',
      path: '/api/network/restart',
      summary: 'Restart the network service with the configuration in force',
      description: 'Acts when the answer has gone out.',
      body: Type.Object({}, closed),
      bodyOptional: true,
      response: Success,
      errors: ['CONFLICT', 'UNSUPPORTED_SETTING'],
      handler: () => {
        trials.restart()
        return { success: true }
      },
    }),
  ]
}

function trialOf({ networkTrials }: NetworkParts, name: string): { expires: string } | null {
  const end = networkTrials.endOf(name)
  return end === null ? null : { expires: new Date(end).toISOString() }
}

function configOf(parts: NetworkParts) {
  const { network } = parts
  const outside = network.interfaces().filter(({ type }) => type !== 'loopback')
  const entries = outside.map(({ name, method, ipv4, gateway, dns }) => {
    const [main] = [...ipv4].sort((a, b) => Number(a.origin === 'link-local') - Number(b.origin === 'link-local'))
    const address = {
      ip_address: main?.address ?? null,
      prefix: main?.prefix ?? null,
      netmask: main ? netmaskText(main.prefix) : null,
    }
    return [name, { method, ...address, gateway, dns_servers: dns, trial: trialOf(parts, name) }] as const
  })
  return {
    hostname: network.hostname(),
    mdns_name: network.mdnsName(),
    dns_servers: network.dnsServers(),
    default_route: network.defaultRoute(),
    ipv6_default_route: network.ipv6DefaultRoute(),
    interfaces: Object.fromEntries(entries),
    ports: parts.networkPorts(),
  }
}
