/**
 * What systemd-networkd tells of the links that it manages: its state files, its DHCP leases, and the configuration files that it goes by.
 * Elsewhere there is none of it, and every answer is empty.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface ConfiguredNetwork {
  readonly method: 'dhcp' | 'static' | null
  /** With the length of the prefix behind a slash, as written. */
  readonly addresses: readonly string[]
  readonly gateways: readonly string[]
  readonly dns: readonly string[]
}

export interface LinkState {
  /** The configuration in force. */
  readonly network: ConfiguredNetwork
  /** The address that the DHCP server has given. */
  readonly leased: string | null
  readonly dns: readonly string[]
  readonly ntp: readonly string[]
  /** The link answers to the host's name by multicast. */
  readonly mdns: boolean
}

const STATE_FOLDER = 'run/systemd/netif'
const NOTHING: ConfiguredNetwork = { method: null, addresses: [], gateways: [], dns: [] }

/** `index`: the kernel's number of the link. */
export function linkState(root: string, index: number): LinkState {
  const state = assignments(read(root, `${STATE_FOLDER}/links/${index}`))
  const lease = assignments(read(root, `${STATE_FOLDER}/leases/${index}`))
  const file = state.get('NETWORK_FILE')?.[0]
  return {
    network: file === undefined ? NOTHING : parseNetworkFile(read(root, file)),
    leased: lease.get('ADDRESS')?.[0] ?? null,
    dns: state.get('DNS') ?? [],
    ntp: state.get('NTP') ?? [],
    mdns: ['yes', 'resolve'].includes(state.get('MDNS')?.[0] ?? ''),
  }
}

/** A `.network` file. An empty value takes back what stood before it. */
export function parseNetworkFile(text: string): ConfiguredNetwork {
  const values = new Map<string, string[]>()
  let section = ''
  for (const line of text.split('\n').map((raw) => raw.trim())) {
    const heading = /^\[(\w+)\]$/.exec(line)?.[1]
    if (heading !== undefined) section = heading
    const [, key, value = ''] = /^(\w+)\s*=\s*(.*)$/.exec(line) ?? []
    if (key === undefined) continue
    const name = `${section}.${key}`
    values.set(name, value === '' ? [] : [...(values.get(name) ?? []), ...value.split(/\s+/)])
  }
  const of = (...names: string[]) => names.flatMap((name) => values.get(name) ?? [])
  const addresses = of('Network.Address', 'Address.Address')
  const dhcp = ['yes', 'true', '1', 'on', 'ipv4'].includes(of('Network.DHCP').at(-1) ?? '')
  return {
    method: dhcp ? 'dhcp' : addresses.length > 0 ? 'static' : null,
    addresses,
    gateways: of('Network.Gateway', 'Route.Gateway'),
    dns: of('Network.DNS'),
  }
}

/** Names of time servers in the configuration of systemd-timesyncd, the chosen ones before those to fall back on. */
export function timeServers(root: string): string[] {
  const folders = ['usr/lib/systemd/timesyncd.conf.d', 'etc/systemd/timesyncd.conf.d']
  const files = ['etc/systemd/timesyncd.conf', ...folders.flatMap((folder) => inFolder(root, folder))]
  const texts = files.map((file) => read(root, file))
  const of = (key: string) =>
    texts.flatMap((text) => new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1]?.split(/\s+/).filter(Boolean) ?? [])
  return [...of('NTP'), ...of('FallbackNTP')]
}

function inFolder(root: string, folder: string): string[] {
  try {
    const names = readdirSync(join(root, folder)).filter((name) => name.endsWith('.conf'))
    return names.sort().map((name) => join(folder, name))
  } catch {
    return []
  }
}

/** Lines of `KEY=value value`, values perhaps in quotes. */
function assignments(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [, key, value = ''] = /^([A-Z0-9_]+)=(.*)$/.exec(line) ?? []
    const items = value.replaceAll('"', '').split(/\s+/).filter(Boolean)
    if (key !== undefined && items.length > 0) found.set(key, items)
  }
  return found
}

function read(root: string, path: string): string {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    return ''
  }
}
