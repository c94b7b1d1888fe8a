import fc from 'fast-check'
import t from 'tap'
import type { ApiError } from '../../../app/server/errors.ts'
import { type InterfaceRequest, planFor, requestWords } from '../../../app/server/network/plan.ts'
import { netmaskText, subnet, toText } from '../../../app/server/network/subnet.ts'
import type { NetworkInterface } from '../../../app/server/platform/index.ts'

function iface(name: string, ...cidrs: readonly string[]): NetworkInterface {
  const ipv4 = cidrs.map((cidr) => {
    const [address = '', prefix] = cidr.split('/')
    return { address, prefix: Number(prefix), origin: null }
  })
  return { name, type: name === 'lo' ? 'loopback' : 'ethernet', ipv4, ipv6: [] } as unknown as NetworkInterface
}

const eth0 = iface('eth0', '192.168.1.7/24')
const machine = [iface('lo', '127.0.0.1/8'), eth0, iface('eth1', '10.20.0.5/16')]
const good = { method: 'static', ip_address: '192.168.1.20', netmask: '255.255.255.0', gateway: '192.168.1.1' } as const

t.test('what is sent to the system service', async (t) => {
  const words = (request: InterfaceRequest) => requestWords('eth0', planFor(eth0, request, machine)).join(' ')
  t.equal(
    words({ ...good, dns_servers: ['9.9.9.9', '2620:fe::FE'] }),
    'eth0 static 192.168.1.20/24 192.168.1.1 9.9.9.9,2620:fe::fe',
  )
  t.equal(words({ ...good, gateway: null, netmask: 25 }), 'eth0 static 192.168.1.20/25 - -')
  t.equal(
    words({ ...good, gateway: '', netmask: '/24', dns_servers: ['9.9.9.9', '9.9.9.9'] }),
    'eth0 static 192.168.1.20/24 - 9.9.9.9',
  )
  t.equal(words({ method: 'dhcp' }), 'eth0 dhcp')
  t.equal(words({ method: 'dhcp', ip_address: null, netmask: '', gateway: null, dns_servers: [] }), 'eth0 dhcp')
})

t.test('what is refused, and which field is to blame', async (t) => {
  const table: [change: Partial<InterfaceRequest>, code: string, details: string][] = [
    [{ ip_address: null }, 'INVALID_REQUEST', 'body.ip_address'],
    [{ netmask: null }, 'INVALID_REQUEST', 'body.netmask'],
    [{ netmask: '' }, 'INVALID_REQUEST', 'body.netmask'],
    [{ ip_address: '192.168.1' }, 'INVALID_REQUEST', 'body.ip_address'],
    [{ ip_address: '192.168.01.20' }, 'INVALID_REQUEST', 'body.ip_address'],
    [{ ip_address: 'fd00::1' }, 'INVALID_REQUEST', 'body.ip_address'],
    [{ ip_address: '127.0.0.2' }, 'INVALID_REQUEST', 'body.ip_address'],
    [{ ip_address: '169.254.1.1' }, 'INVALID_REQUEST', 'body.ip_address'],
    [{ ip_address: '239.1.1.1' }, 'INVALID_REQUEST', 'body.ip_address'],
    [{ ip_address: '192.168.1.0' }, 'INVALID_REQUEST', 'body.ip_address'],
    [{ ip_address: '192.168.1.255' }, 'INVALID_REQUEST', 'body.ip_address'],
    [{ netmask: '255.0.255.0' }, 'INVALID_REQUEST', 'body.netmask'],
    [{ netmask: 33 }, 'INVALID_REQUEST', 'body.netmask'],
    [{ netmask: 32 }, 'INVALID_REQUEST', 'body.netmask'],
    [{ netmask: 0 }, 'INVALID_REQUEST', 'body.netmask'],
    [{ netmask: '128.0.0.0' }, 'INVALID_REQUEST', 'body.netmask'],
    [{ gateway: '192.168.2.1' }, 'INVALID_REQUEST', 'body.gateway'],
    [{ gateway: '192.168.1.255' }, 'INVALID_REQUEST', 'body.gateway'],
    [{ gateway: '192.168.1.0' }, 'INVALID_REQUEST', 'body.gateway'],
    [{ gateway: '192.168.1.20' }, 'INVALID_REQUEST', 'body.gateway'],
    [{ gateway: 'router' }, 'INVALID_REQUEST', 'body.gateway'],
    [{ dns_servers: ['9.9.9.9', 'dns.example'] }, 'INVALID_REQUEST', 'body.dns_servers.1'],
    [{ dns_servers: ['127.0.0.53'] }, 'INVALID_REQUEST', 'body.dns_servers.0'],
    [{ dns_servers: ['::1'] }, 'INVALID_REQUEST', 'body.dns_servers.0'],
    [{ dns_servers: ['::ffff:127.0.0.1'] }, 'INVALID_REQUEST', 'body.dns_servers.0'],
    [{ dns_servers: ['fe80::1%eth0'] }, 'INVALID_REQUEST', 'body.dns_servers.0'],
    [{ dns_servers: ['255.255.255.255'] }, 'INVALID_REQUEST', 'body.dns_servers.0'],
    [{ ip_address: '10.20.1.1', gateway: null }, 'CONFLICT', 'eth1 10.20.0.5/16'],
    [{ ip_address: '10.1.1.1', netmask: 8, gateway: null }, 'CONFLICT', 'eth1 10.20.0.5/16'],
    [{ method: 'dhcp' }, 'INVALID_REQUEST', 'body.ip_address'],
  ]
  for (const [change, code, details] of table) {
    const request = { ...good, ...change }
    t.throws(() => planFor(eth0, request, machine), { code, details }, JSON.stringify(change))
  }
  t.throws(() => planFor(iface('lo'), good, machine), { code: 'UNSUPPORTED_SETTING' })
  t.doesNotThrow(() => planFor(eth0, { ...good, ip_address: '192.168.1.7' }, machine), 'the address that it has already')
})

t.test('whatever the subnet: its hosts are taken, with any other host as gateway, and nothing else is', async () => {
  const host = fc.tuple(
    fc.integer({ min: 1, max: 223 }).filter((first) => first !== 127 && first !== 10 && first !== 169),
    fc.integer({ min: 0, max: 0xffffff }),
  )
  const any = fc.integer({ min: 0, max: 0xffffffff })
  fc.assert(
    fc.property(host, fc.integer({ min: 8, max: 31 }), any, ([first, rest], prefix, gateway) => {
      const own = first * 2 ** 24 + rest
      const net = subnet(own, prefix)
      const inside = net.first + (gateway % (net.last - net.first + 1))
      const edge = (address: number) => prefix < 31 && (address === net.first || address === net.last)
      const expected = !edge(own) && !edge(inside) && inside !== own
      const request = {
        method: 'static',
        ip_address: toText(own),
        netmask: netmaskText(prefix),
        gateway: toText(inside),
      } as const
      return accepted(request) === expected
    }),
  )
})

t.test('whatever is sent: an error that names its field, or words that the system service takes', async () => {
  const text = fc.oneof(fc.string(), fc.ipV4(), fc.ipV6(), fc.constant(null))
  const request = fc.record({
    method: fc.constantFrom('static' as const, 'dhcp' as const),
    ip_address: text,
    netmask: fc.oneof(text, fc.integer()),
    gateway: text,
    dns_servers: fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.string()), { maxLength: 4 }),
  })
  fc.assert(
    fc.property(request, (given) => {
      try {
        const words = requestWords('eth0', planFor(eth0, given, machine))
        return words.every((word) => /^[A-Za-z0-9._:,/=+@%-]{1,255}$/.test(word))
      } catch (error) {
        const { code, details } = error as ApiError
        return code === 'CONFLICT' || (code === 'INVALID_REQUEST' && /^body\.\w+/.test(details))
      }
    }),
  )
})

function accepted(request: InterfaceRequest): boolean {
  try {
    planFor(eth0, request, [eth0])
    return true
  } catch {
    return false
  }
}
