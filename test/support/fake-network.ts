/** A machine's network as the kernel and systemd-networkd would show it below a folder of the test's own. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { NetworkInterfaceInfo } from 'node:os'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { NetworkReader } from '../../app/server/platform/index.ts'

const ROUTE_HEADING = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n'
const TCP_HEADING = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n'

export class FakeNetwork {
  readonly root = mkdtempSync(join(tmpdir(), 'network-'))
  readonly addresses: Record<string, NetworkInterfaceInfo[]> = {}
  readonly reader = new NetworkReader(this.root, () => this.addresses)

  constructor(t: Test) {
    t.teardown(() => rmSync(this.root, { recursive: true }))
  }

  write(path: string, text: string): void {
    const file = join(this.root, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }

  /** Ethernet that is up, unless `attributes` say otherwise; an attribute that is null is not there. */
  link(name: string, index: number, attributes: Readonly<Record<string, string | null>> = {}): void {
    const all: Record<string, string | null> = {
      ifindex: `${index}`,
      type: '1',
      operstate: 'up',
      carrier: '1',
      speed: '1000',
      mtu: '1500',
      address: `02:00:00:00:00:0${index}`,
      'device/uevent': '',
      ...attributes,
    }
    for (const [key, value] of Object.entries(all)) if (value !== null) this.write(`sys/class/net/${name}/${key}`, `${value}\n`)
    this.addresses[name] ??= []
  }

  /** Replaces what the interface has. */
  hold(name: string, ...cidrs: readonly string[]): void {
    this.addresses[name] = cidrs.map((cidr) => {
      const address = cidr.split('/')[0] ?? ''
      const shared = { address, cidr, netmask: '', mac: '', internal: false }
      return address.includes(':') ? { ...shared, family: 'IPv6', scopeid: 0 } : { ...shared, family: 'IPv4' }
    })
  }

  /** What systemd-networkd knows of the link; `file`: the text of its configuration. */
  networkd(index: number, file: string, state = '', lease = ''): void {
    const path = `/run/systemd/network/10-camera-${index}.network`
    this.write(path, file)
    this.write(
      `run/systemd/netif/links/${index}`,
      `# This is private data.\nADMIN_STATE=configured\nNETWORK_FILE=${path}\n${state}`,
    )
    if (lease !== '') this.write(`run/systemd/netif/leases/${index}`, lease)
  }

  defaultRoute(name: string, gateway: string, metric = 0): void {
    this.write(
      'proc/net/route',
      `${ROUTE_HEADING}${name}\t00000000\t${word(gateway)}\t0003\t0\t0\t${metric}\t00000000\t0\t0\t0\n`,
    )
  }

  /** The connections in the kernel's table: our end, the other end's address, the state. */
  connections(...list: readonly (readonly [local: string, port: number, remote: string, state?: string])[]): void {
    const rows = list.map(([local, port, remote, state = '01'], i) => {
      const hex = port.toString(16).toUpperCase().padStart(4, '0')
      return `   ${i}: ${word(local)}:${hex} ${word(remote)}:C001 ${state} 00000000:00000000 00:00000000 00000000 0 0 1 1 0\n`
    })
    this.write('proc/net/tcp', TCP_HEADING + rows.join(''))
  }
}

/** As a little-endian kernel prints an IPv4 address. */
function word(address: string): string {
  return Buffer.from(address.split('.').map(Number).reverse()).toString('hex').toUpperCase()
}
