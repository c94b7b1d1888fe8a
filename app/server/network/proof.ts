/**
 * Whether a confirmation proves that the camera can be reached as it is configured now. The HTTP library does not tell to which of our addresses
 * a connection was made, and the Host header is only what the client says. The kernel knows: its table of connections has our own address of
 * every connection that the client's host has open to our ports. A handshake that was completed on the new address is all the proof there is.
 */
import type { NetworkInterface } from '../platform/index.ts'
import type { Plan } from './plan.ts'

/** Null: it does; else what is missing. `seen`: our addresses in the client's connections; `lost`: fixed addresses that were given up. */
export function confirmationProves(
  plan: Plan,
  lost: readonly string[],
  name: string,
  seen: ReadonlySet<string>,
  interfaces: readonly NetworkInterface[],
): string | null {
  if (plan.method === 'static') {
    const held = interfaces.some((one) => one.name === name && one.ipv4.some(({ address }) => address === plan.address))
    if (!held) return `The interface does not have the address ${plan.address} yet: ask again`
    return seen.has(plan.address) ? null : `The confirmation must come over the new address ${plan.address}`
  }
  // The address of old is proof again where the DHCP server has given the same.
  const valid = interfaces
    .filter(({ type }) => type !== 'loopback')
    .flatMap(({ ipv4, ipv6 }) => [...ipv4, ...ipv6])
    .filter(({ address, origin }) => origin === 'dhcp' || !lost.includes(address))
  return valid.some(({ address }) => seen.has(address))
    ? null
    : 'The confirmation must come over an address that the camera has from now on'
}
