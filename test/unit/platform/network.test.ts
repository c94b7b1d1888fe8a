import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import t from 'tap'
import { NetworkReader, parseNetworkFile } from '../../../app/server/platform/index.ts'
import { FakeNetwork } from '../../support/fake-network.ts'

t.test('an interface that systemd-networkd has configured by DHCP', async (t) => {
  const net = new FakeNetwork(t)
  net.link('eth0', 2, { 'statistics/rx_bytes': '1000', 'statistics/tx_errors': '3' })
  net.hold('eth0', '192.168.1.7/24', '169.254.3.4/16', 'fe80::1/64', '2001:db8::7/64', '2001:db8::8/128')
  net.networkd(
    2,
    '[Match]\nName=eth0\n[Network]\nDHCP=yes\n',
    'DNS=192.168.1.1 9.9.9.9\nNTP=ntp.example.org\nMDNS=yes\n',
    'ADDRESS=192.168.1.7\nROUTER=192.168.1.1\n',
  )
  net.defaultRoute('eth0', '192.168.1.1', 100)
  net.write(
    'proc/net/if_inet6',
    '20010db8000000000000000000000007 02 40 00 00 eth0\n20010db8000000000000000000000008 02 80 00 00 eth0\n',
  )
  net.write(
    'proc/net/ipv6_route',
    `${'0'.repeat(32)} 00 ${'0'.repeat(32)} 00 fe8000000000000000000000000000ff 00000400 00000003 00000000 00000003     eth0\n` +
      `${'0'.repeat(32)} 00 ${'0'.repeat(32)} 00 ${'0'.repeat(32)} ffffffff 00000001 00000000 00200200       lo\n`,
  )
  t.match(net.reader.interface('eth0'), {
    name: 'eth0',
    type: 'ethernet',
    mac: '02:00:00:00:00:02',
    state: 'up',
    carrier: true,
    speed_mbps: 1000,
    mtu: 1500,
    gateway: '192.168.1.1',
    ipv6_gateway: 'fe80::ff',
    dns: ['192.168.1.1', '9.9.9.9'],
    method: 'dhcp',
    statistics: { rx_bytes: 1000, tx_errors: 3, tx_bytes: null },
  })
  t.same(net.reader.interface('eth0')?.ipv4, [
    { address: '192.168.1.7', prefix: 24, origin: 'dhcp' },
    { address: '169.254.3.4', prefix: 16, origin: 'link-local' },
  ])
  t.same(net.reader.interface('eth0')?.ipv6, [
    { address: 'fe80::1', prefix: 64, origin: 'link-local' },
    { address: '2001:db8::7', prefix: 64, origin: 'router' },
    { address: '2001:db8::8', prefix: 128, origin: 'dhcp' },
  ])
  t.match(net.reader.defaultRoute(), { interface: 'eth0', gateway: '192.168.1.1', metric: 100 })
  t.match(net.reader.ipv6DefaultRoute(), { interface: 'eth0', gateway: 'fe80::ff', metric: 1024 })
  t.equal(net.reader.mdnsName(), `${net.reader.hostname()}.local`)
})

t.test('kinds of interfaces, and what one that is down does not tell', async (t) => {
  const net = new FakeNetwork(t)
  net.link('lo', 1, { type: '772', address: '00:00:00:00:00:00', speed: null })
  net.link('eth1', 2, { carrier: null, speed: '-1', operstate: 'down' })
  net.link('wlan0', 3, { 'phy80211/name': 'phy0' })
  net.link('br0', 4, { 'device/uevent': null })
  net.link('tun0', 5, { type: '65534' })
  net.write('sys/class/net/bonding_masters', 'bond0\n')
  t.same(
    net.reader.interfaces().map(({ name, type }) => `${name} ${type}`),
    ['br0 other', 'eth1 ethernet', 'lo loopback', 'tun0 other', 'wlan0 wifi'],
  )
  t.match(net.reader.interface('eth1'), { carrier: null, speed_mbps: null, state: 'down', method: null, ipv4: [], dns: [] })
  t.equal(net.reader.interface('lo')?.mac, null)
  t.equal(net.reader.interface('../eth1'), null)
  t.equal(net.reader.mdnsName(), null, 'nobody answers to it')
  net.write('run/avahi-daemon/pid', '12\n')
  t.ok(net.reader.mdnsName())
})

t.test('an empty machine has nothing, and that is no error', async (t) => {
  const net = new FakeNetwork(t)
  t.same(net.reader.interfaces(), [])
  t.same(net.reader.dnsServers(), [])
  t.same(net.reader.timeServers(), [])
  t.equal(net.reader.defaultRoute(), null)
  t.equal(net.reader.tables.neighbourKnown('192.168.1.1'), null)
})

t.test('static configurations, and the origin of their addresses', async (t) => {
  const net = new FakeNetwork(t)
  net.link('eth0', 2)
  net.hold('eth0', '10.0.0.5/8')
  net.networkd(2, '[Network]\nAddress=10.0.0.5/8\nGateway=10.0.0.1\nDNS=10.0.0.2 10.0.0.3\nDNS=10.0.0.4\n')
  t.match(net.reader.interface('eth0'), { method: 'static', ipv4: [{ origin: 'static' }] })
  t.same(net.reader.link('eth0').network, {
    method: 'static',
    addresses: ['10.0.0.5/8'],
    gateways: ['10.0.0.1'],
    dns: ['10.0.0.2', '10.0.0.3', '10.0.0.4'],
  })
  t.match(parseNetworkFile('# x\n[Network]\nDHCP=no\n[Address]\nAddress = 10.1.1.1/24\n[Route]\nGateway=10.1.1.2\n'), {
    method: 'static',
    addresses: ['10.1.1.1/24'],
    gateways: ['10.1.1.2'],
  })
  t.match(parseNetworkFile('[Network]\nDNS=1.1.1.1\nDNS=\nDNS=9.9.9.9\nDHCP=no\n'), { method: null, dns: ['9.9.9.9'] })
})

t.test('name and time servers', async (t) => {
  const net = new FakeNetwork(t)
  net.write('etc/resolv.conf', 'nameserver 127.0.0.53\noptions edns0\n')
  t.same(net.reader.dnsServers(), ['127.0.0.53'])
  net.write('run/systemd/resolve/resolv.conf', '# real ones\nnameserver 192.168.1.1\nnameserver fd00::1\n')
  t.same(net.reader.dnsServers(), ['192.168.1.1', 'fd00::1'])
  net.write('etc/systemd/timesyncd.conf', '[Time]\n#NTP=\nFallbackNTP=fallback.example\n')
  net.write('usr/lib/systemd/timesyncd.conf.d/50-x.conf', '[Time]\nNTP=first.example second.example\n')
  t.same(net.reader.timeServers(), ['first.example', 'second.example', 'fallback.example'])
  net.write(
    'proc/net/arp',
    'IP address HW type Flags HW address Mask Device\n10.0.0.1 0x1 0x2 02:00:00:00:00:01 * eth0\n10.0.0.9 0x1 0x0 00:00:00:00:00:00 * eth0\n',
  )
  t.equal(net.reader.tables.neighbourKnown('10.0.0.1'), true)
  t.equal(net.reader.tables.neighbourKnown('10.0.0.9'), false)
})

t.test('only connections that the other side has completed, to our ports, from that host', async (t) => {
  const net = new FakeNetwork(t)
  net.connections(
    ['192.168.1.20', 8080, '192.168.1.99'],
    ['192.168.1.21', 8081, '192.168.1.99', '08'],
    ['192.168.1.22', 8080, '192.168.1.99', '03'],
    ['192.168.1.23', 22, '192.168.1.99'],
    ['192.168.1.24', 8080, '192.168.1.98'],
    ['192.168.1.25', 8080, '192.168.1.99', '06'],
  )
  t.same([...net.reader.tables.localAddresses('192.168.1.99', [8080, 8081])], ['192.168.1.20', '192.168.1.21'])
  t.same([...net.reader.tables.localAddresses('192.168.1.97', [8080])], [])
})

t.test('the real kernel tells which of our addresses a connection was made to', async (t) => {
  const server = createServer()
  // The whole of 127/8 is ours.
  server.listen(0, '127.0.0.23')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  const socket = connect({ port, host: '127.0.0.23', localAddress: '127.0.0.42' })
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  const { tables } = new NetworkReader()
  t.same([...tables.localAddresses('127.0.0.42', [port])], ['127.0.0.23'])
  t.same([...tables.localAddresses('127.0.0.23', [port])], [])
})

t.test('of the real machine at least the loopback interface can be read', async (t) => {
  t.match(new NetworkReader().interface('lo'), { type: 'loopback', ipv4: [{ address: '127.0.0.1', prefix: 8 }] })
})
