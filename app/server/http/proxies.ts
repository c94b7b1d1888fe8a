/** What reverse proxies tell of a client. Only those that are configured are believed: anybody can send such headers. */
import type { HttpRequest } from 'uWebSockets.js'
import ipaddr from 'ipaddr.js'
import { type ClientAddress, clientAddress } from './address.ts'

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = readonly [Address, number]

/** One address, or a range in CIDR notation; throws an `Error` for anything else. */
export function parseRange(text: string): Range {
  const [address = '', bits] = text.split('/', 2)
  // The library takes `10` and `0x7f.1` for addresses too.
  if (!isAddress(address)) throw new Error(`${text} is no address`)
  if (bits !== undefined) return ipaddr.parseCIDR(text)
  const parsed = ipaddr.parse(address)
  return [parsed, parsed.kind() === 'ipv4' ? 32 : 128]
}

function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || (text.includes(':') && !text.includes('%') && ipaddr.IPv6.isValid(text))
}

export class TrustedProxies {
  readonly #ranges: readonly Range[]

  constructor(ranges: readonly string[]) {
    this.#ranges = ranges.map(parseRange)
  }

  get none(): boolean {
    return this.#ranges.length === 0
  }

  trusts(address: string): boolean {
    if (!ipaddr.isValid(address)) return false
    const parsed = ipaddr.process(address)
    return this.#ranges.some(([range, bits]) => range.kind() === parsed.kind() && parsed.match(range, bits))
  }

  /** Seen from us, the first address of the way that belongs to no proxy of ours. */
  client(peer: ClientAddress, forwardedFor: string): ClientAddress {
    let nearest = peer
    for (const hop of forwardedFor.split(',').reverse()) {
      if (!this.trusts(nearest.text)) break
      const address = hopAddress(hop.trim())
      // What lies beyond something that cannot be read was not written by a proxy of ours.
      if (address === null) break
      nearest = address
    }
    return nearest
  }
}

/** As proxies write it: with or without a port, IPv6 with or without brackets. */
function hopAddress(hop: string): ClientAddress | null {
  const [, bracketed, dotted] = /^\[([^\]]+)\](?::\d+)?$|^([\d.]+)(?::\d+)?$/.exec(hop) ?? []
  const text = bracketed ?? dotted ?? hop
  if (!isAddress(text)) return null
  const parsed = ipaddr.process(text)
  if (parsed.kind() === 'ipv4') return clientAddress(parsed.toString())
  const groups = (parsed as ipaddr.IPv6).parts.map((part) => part.toString(16).padStart(4, '0'))
  return clientAddress(groups.join(':'))
}

/** All lines of a header as one: a proxy may have added a line below the client's own. */
export function wholeHeader(req: HttpRequest, wanted: string): string {
  const values: string[] = []
  req.forEach((name, value) => {
    if (name === wanted) values.push(value)
  })
  return values.join(',')
}

export function lastItem(list: string): string {
  return list.slice(list.lastIndexOf(',') + 1).trim()
}
