/** The kernel's own tables below /proc/net: routes, connections, neighbours. What is not there is empty. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ipaddr from 'ipaddr.js'

export interface DefaultRoute {
  readonly interface: string
  readonly gateway: string
  readonly metric: number
}

/** Route flags of the kernel. */
const RTF_UP = 0x1
const RTF_GATEWAY = 0x2
const RTF_REJECT = 0x200
/** The neighbour has answered to its address. */
const ATF_COM = 0x2
/** States of a connection whose handshake the other side has completed. */
const CONNECTED: ReadonlySet<string> = new Set(['01', '08'])
const NO_ADDRESS = '0'.repeat(32)

export class NetworkTables {
  constructor(private readonly root = '/') {}

  /** The default routes of IPv4, the preferred one first. */
  ipv4DefaultRoutes(): DefaultRoute[] {
    const routes = this.rows('route').flatMap(([name = '', destination, gateway = '', flags = '', , , metric = '', mask]) => {
      const wanted = destination === '00000000' && mask === '00000000'
      if (!wanted || (Number.parseInt(flags, 16) & (RTF_UP | RTF_GATEWAY)) !== (RTF_UP | RTF_GATEWAY)) return []
      return [{ interface: name, gateway: addressOf(gateway), metric: Number(metric) }]
    })
    return routes.sort((a, b) => a.metric - b.metric)
  }

  /** The same for IPv6, whose table has no heading. */
  ipv6DefaultRoutes(): DefaultRoute[] {
    const routes = this.lines('ipv6_route').flatMap((line) => {
      const [destination, prefix, , , gateway = '', metric = '', , , flags = '', name = ''] = line.trim().split(/\s+/)
      if (destination !== NO_ADDRESS || prefix !== '00' || gateway === NO_ADDRESS) return []
      const bits = Number.parseInt(flags, 16)
      if ((bits & RTF_UP) === 0 || (bits & RTF_REJECT) !== 0) return []
      return [{ interface: name, gateway: inNetworkOrder(gateway), metric: Number.parseInt(metric, 16) }]
    })
    return routes.sort((a, b) => a.metric - b.metric)
  }

  /** IPv6 addresses that routers have advertised, as opposed to those that somebody has written down: they are not permanent. */
  advertisedAddresses(): Set<string> {
    const IFA_F_PERMANENT = 0x80
    const rows = this.lines('if_inet6').map((line) => line.trim().split(/\s+/))
    const temporary = rows.filter(([, , , , flags = '']) => (Number.parseInt(flags, 16) & IFA_F_PERMANENT) === 0)
    return new Set(temporary.flatMap(([address = '']) => (address.length === 32 ? [inNetworkOrder(address)] : [])))
  }

  /** Our own addresses in the connections that `peer` has open to one of our `ports`. */
  localAddresses(peer: string, ports: readonly number[]): Set<string> {
    const found = new Set<string>()
    for (const table of ['tcp', 'tcp6']) {
      for (const [, local = '', remote = '', state = ''] of this.rows(table)) {
        const [address = '', port = ''] = local.split(':')
        if (!CONNECTED.has(state) || !ports.includes(Number.parseInt(port, 16))) continue
        if (addressOf(remote.split(':')[0] ?? '') === peer) found.add(addressOf(address))
      }
    }
    return found
  }

  /** Whether an IPv4 neighbour has answered for its address; null: nobody has asked. */
  neighbourKnown(address: string): boolean | null {
    const entry = this.rows('arp').find(([of]) => of === address)
    return entry ? (Number(entry[2]) & ATF_COM) !== 0 : null
  }

  private rows(name: string): string[][] {
    return this.lines(name)
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
  }

  private lines(name: string): string[] {
    try {
      return readFileSync(join(this.root, 'proc/net', name), 'utf8').split('\n')
    } catch {
      return []
    }
  }
}

/** Hexadecimal words of 32 bits, each with its lowest byte first, as a little-endian kernel prints them. */
function addressOf(hex: string): string {
  const bytes = Buffer.from(hex, 'hex')
  if (bytes.length !== 4 && bytes.length !== 16) return ''
  return ipaddr.process(ipaddr.fromByteArray([...bytes.swap32()]).toString()).toString()
}

function inNetworkOrder(hex: string): string {
  return ipaddr.fromByteArray([...Buffer.from(hex, 'hex')]).toString()
}
