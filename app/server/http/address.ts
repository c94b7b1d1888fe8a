/** A client's address: as text for people, and as the key that limits are counted by. */
import ipaddr from 'ipaddr.js'

const MAPPED = '0000:0000:0000:0000:0000:ffff:'

export interface ClientAddress {
  readonly text: string
  /** The IPv4 address, or the /64 of an IPv6 one: a household gets that many addresses for the asking. */
  readonly key: string
}

/** `raw` is uWS's text: dotted, or eight full groups. */
export function clientAddress(raw: string): ClientAddress {
  if (!raw.includes(':')) return { text: raw, key: raw }
  if (raw.startsWith(MAPPED)) {
    const text = ipaddr.parse(raw)
    const v4 = text.kind() === 'ipv6' ? (text as ipaddr.IPv6).toIPv4Address().toString() : raw
    return { text: v4, key: v4 }
  }
  return { text: ipaddr.parse(raw).toString(), key: raw.slice(0, 19) }
}
