/** What a client wants an interface to be, checked in full before anything is touched. */
import ipaddr from 'ipaddr.js'
import { Conflict, InvalidRequest, UnsupportedSetting } from '../errors.ts'
import type { NetworkInterface } from '../platform/index.ts'
import { contains, isHost, isUnicast, overlap, prefixOf, type Subnet, subnet, toNumber, toText } from './subnet.ts'

/** As in the request: absent and null say the same. */
export interface InterfaceRequest {
  readonly method: 'static' | 'dhcp'
  readonly ip_address?: string | null | undefined
  readonly netmask?: string | number | null | undefined
  readonly gateway?: string | null | undefined
  readonly dns_servers?: readonly string[] | null | undefined
}

export interface StaticPlan {
  readonly method: 'static'
  readonly address: string
  readonly prefix: number
  readonly gateway: string | null
  readonly dns: readonly string[]
}

export type Plan = StaticPlan | { readonly method: 'dhcp' }

/** Nobody's subnet is larger than what once was a class A network. */
const MIN_PREFIX = 8
/** One address alone has no neighbours, and no gateway. */
const MAX_PREFIX = 31
const FIXED_FIELDS = ['ip_address', 'netmask', 'gateway', 'dns_servers'] as const
const UNUSABLE_IPV6: ReadonlySet<string> = new Set(['unspecified', 'loopback', 'multicast', 'linkLocal'])

/** Throws what the client is told. `others`: all interfaces of the machine. */
export function planFor(target: NetworkInterface, request: InterfaceRequest, others: readonly NetworkInterface[]): Plan {
  if (target.type === 'loopback') throw new UnsupportedSetting('name', 'The loopback interface has its fixed address')
  if (request.method === 'dhcp') {
    const surplus = FIXED_FIELDS.find((field) => (request[field] ?? '') !== '' && `${request[field]}` !== '')
    if (surplus !== undefined) throw new InvalidRequest(`body.${surplus}`, 'With DHCP the network gives this value')
    return { method: 'dhcp' }
  }
  const net = wantedSubnet(request)
  refuseClash(target, net, others)
  return {
    method: 'static',
    address: toText(net.address),
    prefix: net.prefix,
    gateway: checkedGateway(request.gateway ?? '', net),
    dns: checkedServers(request.dns_servers ?? []),
  }
}

/** The words behind `network-set`. */
export function requestWords(name: string, plan: Plan): string[] {
  if (plan.method === 'dhcp') return [name, 'dhcp']
  const { address, prefix, gateway, dns } = plan
  return [name, 'static', `${address}/${prefix}`, gateway ?? '-', dns.length === 0 ? '-' : dns.join(',')]
}

function wantedSubnet({ ip_address, netmask }: InterfaceRequest): Subnet {
  if (!ip_address) throw new InvalidRequest('body.ip_address', 'A static configuration needs an address')
  if (netmask === undefined || netmask === null || netmask === '')
    throw new InvalidRequest('body.netmask', 'A static configuration needs a netmask')
  const address = toNumber(ip_address)
  if (address === null) throw new InvalidRequest('body.ip_address', 'Expected an IPv4 address such as 192.168.1.20')
  if (!isUnicast(address)) throw new InvalidRequest('body.ip_address', 'This address is none that a host may have')
  const prefix = prefixOf(String(netmask))
  if (prefix === null)
    throw new InvalidRequest('body.netmask', 'Expected a netmask such as 255.255.255.0 or the length of a prefix such as 24')
  if (prefix < MIN_PREFIX || prefix > MAX_PREFIX)
    throw new InvalidRequest('body.netmask', `The prefix must be from ${MIN_PREFIX} to ${MAX_PREFIX} bits long`)
  const net = subnet(address, prefix)
  if (!isHost(net, address)) throw new InvalidRequest('body.ip_address', 'This is the network or broadcast address of its subnet')
  return net
}

function checkedGateway(text: string, net: Subnet): string | null {
  if (text === '') return null
  const gateway = toNumber(text)
  const field = 'body.gateway'
  if (gateway === null) throw new InvalidRequest(field, 'Expected an IPv4 address such as 192.168.1.1')
  if (!contains(net, gateway))
    throw new InvalidRequest(field, `The gateway is not in the subnet ${toText(net.first)}/${net.prefix}`)
  if (!isHost(net, gateway)) throw new InvalidRequest(field, 'This is the network or broadcast address of the subnet')
  if (gateway === net.address) throw new InvalidRequest(field, 'The gateway has the address of the camera itself')
  return toText(gateway)
}

function checkedServers(servers: readonly string[]): string[] {
  const checked = servers.map((text, i) => {
    const field = `body.dns_servers.${i}`
    const valid = toNumber(text) !== null || (text.includes(':') && !text.includes('%') && ipaddr.IPv6.isValid(text))
    if (!valid) throw new InvalidRequest(field, 'Expected an IPv4 or IPv6 address')
    const address = ipaddr.process(text)
    const ipv4 = toNumber(address.toString())
    if (ipv4 === null ? UNUSABLE_IPV6.has(address.range()) : !isUnicast(ipv4))
      throw new InvalidRequest(field, 'No name server can have this address')
    return address.toString()
  })
  return [...new Set(checked)]
}

/** Two interfaces in one subnet: answers would leave through the wrong one. */
function refuseClash(target: NetworkInterface, net: Subnet, others: readonly NetworkInterface[]): void {
  for (const other of others) {
    if (other.name === target.name) continue
    for (const { address, prefix } of other.ipv4) {
      const taken = toNumber(address)
      if (taken !== null && overlap(net, subnet(taken, prefix)))
        throw new Conflict(`The subnet overlaps with the one of ${other.name}`, `${other.name} ${address}/${prefix}`)
    }
  }
}
