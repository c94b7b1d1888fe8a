/** The network of this machine as the kernel and systemd-networkd tell it, read below `root`; what is not there is null. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { hostname, type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import ipaddr from 'ipaddr.js'
import { type DefaultRoute, NetworkTables } from './network-tables.ts'
import { type LinkState, linkState, timeServers } from './networkd.ts'

export type LinkType = 'ethernet' | 'wifi' | 'loopback' | 'other'
export type AddressOrigin = 'dhcp' | 'static' | 'link-local' | 'router'

export interface InterfaceAddress {
  readonly address: string
  readonly prefix: number
  /** Where the address is from; null where nothing tells. */
  readonly origin: AddressOrigin | null
}

export interface LinkStatistics {
  readonly rx_bytes: number | null
  readonly tx_bytes: number | null
  readonly rx_packets: number | null
  readonly tx_packets: number | null
  readonly rx_errors: number | null
  readonly tx_errors: number | null
  readonly rx_dropped: number | null
  readonly tx_dropped: number | null
}

export interface NetworkInterface {
  readonly name: string
  readonly type: LinkType
  readonly mac: string | null
  /** The kernel's word: `up`, `down`, `dormant`, … */
  readonly state: string
  /** Null where the interface is switched off. */
  readonly carrier: boolean | null
  readonly speed_mbps: number | null
  readonly mtu: number | null
  readonly ipv4: readonly InterfaceAddress[]
  readonly ipv6: readonly InterfaceAddress[]
  readonly gateway: string | null
  readonly ipv6_gateway: string | null
  readonly dns: readonly string[]
  readonly method: 'dhcp' | 'static' | null
  readonly statistics: LinkStatistics
}

/** `ARPHRD_` numbers of the kernel. */
const ETHERNET = '1'
const LOOPBACK = '772'

/** What is read once for all interfaces. */
interface Tables {
  readonly addresses: NodeJS.Dict<NetworkInterfaceInfo[]>
  readonly advertised: ReadonlySet<string>
  readonly routes: readonly DefaultRoute[]
  readonly ipv6Routes: readonly DefaultRoute[]
}

type Addresses = () => NodeJS.Dict<NetworkInterfaceInfo[]>

export class NetworkReader {
  readonly tables: NetworkTables

  constructor(
    private readonly root = '/',
    private readonly addresses: Addresses = networkInterfaces,
  ) {
    this.tables = new NetworkTables(root)
  }

  /** By name. */
  interfaces(): NetworkInterface[] {
    const tables = {
      addresses: this.addresses(),
      advertised: this.tables.advertisedAddresses(),
      routes: this.tables.ipv4DefaultRoutes(),
      ipv6Routes: this.tables.ipv6DefaultRoutes(),
    }
    return this.names().map((name) => this.read(name, tables))
  }

  interface(name: string): NetworkInterface | null {
    return this.interfaces().find((one) => one.name === name) ?? null
  }

  /** How the interface is configured, whatever has become of it so far. */
  link(name: string): LinkState {
    return linkState(this.root, Number(this.attribute(name, 'ifindex')))
  }

  hostname(): string {
    return hostname()
  }

  /** The name under which the local network finds this machine; null where nobody answers to it. */
  mdnsName(): string | null {
    const answered = existsSync(join(this.root, 'run/avahi-daemon/pid')) || this.names().some((name) => this.link(name).mdns)
    return answered ? `${hostname()}.local` : null
  }

  /** The name servers in use: those behind systemd-resolved's own one, where that stands in front of them. */
  dnsServers(): string[] {
    const text = this.text('run/systemd/resolve/resolv.conf') ?? this.text('etc/resolv.conf') ?? ''
    return [...text.matchAll(/^nameserver\s+(\S+)/gm)].flatMap(([, server]) => server ?? [])
  }

  /** Names or addresses, those that the network has told first. */
  timeServers(): string[] {
    return [...new Set([...this.names().flatMap((name) => this.link(name).ntp), ...timeServers(this.root)])]
  }

  defaultRoute(): DefaultRoute | null {
    return this.tables.ipv4DefaultRoutes()[0] ?? null
  }

  ipv6DefaultRoute(): DefaultRoute | null {
    return this.tables.ipv6DefaultRoutes()[0] ?? null
  }

  private names(): string[] {
    try {
      // Bonding puts a plain file beside the interfaces.
      return readdirSync(join(this.root, 'sys/class/net'))
        .filter((name) => this.attribute(name, 'ifindex') !== null)
        .sort()
    } catch {
      return []
    }
  }

  private read(name: string, tables: Tables): NetworkInterface {
    const number = (attribute: string) => numberOrNull(this.attribute(name, attribute))
    const count = (counter: string) => number(`statistics/${counter}`)
    const link = this.link(name)
    const mac = this.attribute(name, 'address')
    const carrier = number('carrier')
    const speed = number('speed')
    const through = (routes: readonly DefaultRoute[]) => routes.find((route) => route.interface === name)?.gateway ?? null
    const gateway = through(tables.routes)
    const fixed = new Set(link.network.addresses.map((entry) => entry.split('/')[0] ?? ''))
    const addresses = (family: 'IPv4' | 'IPv6') =>
      (tables.addresses[name] ?? [])
        .filter((entry) => entry.family === family)
        .map(({ address, cidr }) => ({
          address,
          prefix: Number(cidr?.split('/')[1]),
          origin: originOf(address, cidr, link.leased, fixed, tables.advertised),
        }))
    return {
      name,
      type: this.type(name),
      mac: mac === null || /^[0:]*$/.test(mac) ? null : mac,
      state: this.attribute(name, 'operstate') ?? 'unknown',
      carrier: carrier === null ? null : carrier === 1,
      // The kernel says -1 where there is no link.
      speed_mbps: speed !== null && speed > 0 ? speed : null,
      mtu: number('mtu'),
      ipv4: addresses('IPv4'),
      ipv6: addresses('IPv6'),
      gateway,
      ipv6_gateway: through(tables.ipv6Routes),
      dns: link.dns.length > 0 || gateway === null ? link.dns : this.dnsServers(),
      method: link.network.method ?? (link.leased === null ? null : 'dhcp'),
      statistics: {
        rx_bytes: count('rx_bytes'),
        tx_bytes: count('tx_bytes'),
        rx_packets: count('rx_packets'),
        tx_packets: count('tx_packets'),
        rx_errors: count('rx_errors'),
        tx_errors: count('tx_errors'),
        rx_dropped: count('rx_dropped'),
        tx_dropped: count('tx_dropped'),
      },
    }
  }

  private type(name: string): LinkType {
    const kind = this.attribute(name, 'type')
    const has = (entry: string) => existsSync(join(this.root, 'sys/class/net', name, entry))
    if (kind === LOOPBACK) return 'loopback'
    if (has('phy80211') || has('wireless') || /^DEVTYPE=wlan$/m.test(this.attribute(name, 'uevent') ?? '')) return 'wifi'
    // Bridges, tunnels and the like have no device behind them.
    return kind === ETHERNET && has('device') ? 'ethernet' : 'other'
  }

  private attribute(name: string, attribute: string): string | null {
    return this.text(`sys/class/net/${name}/${attribute}`)?.trim() ?? null
  }

  private text(path: string): string | null {
    try {
      return readFileSync(join(this.root, path), 'utf8')
    } catch {
      // Also where the interface is down: the kernel refuses to say whether it has a carrier.
      return null
    }
  }
}

function originOf(
  address: string,
  cidr: string | null,
  leased: string | null,
  fixed: ReadonlySet<string>,
  advertised: ReadonlySet<string>,
): AddressOrigin | null {
  if (address === leased) return 'dhcp'
  if (fixed.has(address)) return 'static'
  if (ipaddr.parse(address).range() === 'linkLocal') return 'link-local'
  if (!advertised.has(address)) return null
  // A DHCP server gives single IPv6 addresses, routers advertise prefixes.
  return cidr?.endsWith('/128') ? 'dhcp' : 'router'
}

function numberOrNull(text: string | null): number | null {
  return text !== null && /^-?\d+$/.test(text) ? Number(text) : null
}
