/** IPv4 subnets as numbers. Pure. */
import { isIPv4 } from 'node:net'

export interface Subnet {
  /** Unsigned 32 bits, as are the two below. */
  readonly address: number
  readonly first: number
  readonly last: number
  readonly prefix: number
}

/** Null for anything but four decimal numbers: no leading zeros, which some read as octal. */
export function toNumber(address: string): number | null {
  if (!isIPv4(address)) return null
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
}

export function toText(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.')
}

/** The length of a netmask that is written as a mask (`255.255.255.0`) or as its length (`24`, `/24`); null where it is neither. */
export function prefixOf(netmask: string): number | null {
  const length = /^\/?(\d{1,2})$/.exec(netmask)?.[1]
  if (length !== undefined) return Number(length) <= 32 ? Number(length) : null
  const mask = toNumber(netmask)
  if (mask === null) return null
  const ones = Math.clz32(~mask)
  // Contiguous: nothing is left behind the leading ones.
  return maskOf(ones) === mask ? ones : null
}

export function maskOf(prefix: number): number {
  return prefix === 0 ? 0 : (0xffffffff << (32 - prefix)) >>> 0
}

export function netmaskText(prefix: number): string {
  return toText(maskOf(prefix))
}

export function subnet(address: number, prefix: number): Subnet {
  const mask = maskOf(prefix)
  return { address, prefix, first: (address & mask) >>> 0, last: (address | ~mask) >>> 0 }
}

export function contains({ first, last }: Subnet, address: number): boolean {
  return address >= first && address <= last
}

export function overlap(a: Subnet, b: Subnet): boolean {
  return a.first <= b.last && b.first <= a.last
}

/** May belong to a host of the subnet: neither its network nor its broadcast address, which subnets of two addresses do not have. */
export function isHost(net: Subnet, address: number): boolean {
  return contains(net, address) && (net.prefix >= 31 || (address !== net.first && address !== net.last))
}

/** Of a kind that one host may have: not this network, loopback, link-local, multicast or reserved. */
export function isUnicast(address: number): boolean {
  const [a = 0, b] = [address >>> 24, (address >>> 16) & 255]
  return a > 0 && a < 224 && a !== 127 && !(a === 169 && b === 254)
}
