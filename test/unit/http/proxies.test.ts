import fc from 'fast-check'
import t from 'tap'
import { clientAddress } from '../../../app/server/http/address.ts'
import { lastItem, parseRange, TrustedProxies } from '../../../app/server/http/proxies.ts'

const PEER = clientAddress('10.0.0.1')
const proxies = new TrustedProxies(['10.0.0.0/8', '192.0.2.1', '2001:db8::/32'])

function client(forwardedFor: string, peer = PEER): string {
  return proxies.client(peer, forwardedFor).text
}

t.test('the rightmost address that is no proxy of ours', async (t) => {
  t.equal(client(''), '10.0.0.1')
  t.equal(client('198.51.100.1'), '198.51.100.1')
  t.equal(client('203.0.113.9, 198.51.100.1'), '198.51.100.1', 'what a client has claimed itself does not count')
  t.equal(client('203.0.113.9, 198.51.100.1, 192.0.2.1, 10.3.4.5'), '198.51.100.1')
  t.equal(client('10.1.1.1, 10.2.2.2'), '10.1.1.1', 'a client among the proxies')
  t.equal(client('198.51.100.1', clientAddress('198.51.100.7')), '198.51.100.7', 'a stranger is not believed')
})

t.test('forms of addresses', async (t) => {
  t.equal(client('198.51.100.1:4711'), '198.51.100.1')
  t.equal(client('[2001:DB9::1]:4711'), '2001:db9::1')
  t.equal(client('2001:db9::1'), '2001:db9::1')
  t.equal(client('::ffff:198.51.100.1'), '198.51.100.1')
  t.equal(proxies.client(PEER, '2001:db9:1:2:3::1').key, '2001:0db9:0001:0002', 'limits count the /64')
  for (const bad of ['unknown', '_hidden', '1', '0x7f.1', '256.1.1.1', 'fe80::1%eth0', '198.51.100.1 ; x']) {
    t.equal(client(`203.0.113.9, ${bad}`), '10.0.0.1', `${bad} ends the way`)
  }
})

t.test('whatever is sent, the answer is an address, and a stranger cannot choose it', async (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.array(fc.ipV4()).map(String), fc.array(fc.ipV6()).map(String)), (header) => {
      const stranger = clientAddress('198.51.100.7')
      return proxies.client(stranger, header) === stranger && client(`${header}, 203.0.113.1`) === '203.0.113.1'
    }),
  )
  t.pass()
})

t.test('ranges', async (t) => {
  for (const bad of [
    '',
    '10',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    'proxy',
    '::1/129',
    '0x7f.1',
    '10.0.0/8',
    '10.0.0.0/-1',
  ]) {
    t.throws(() => parseRange(bad), bad)
  }
  t.ok(new TrustedProxies(['0.0.0.0/0']).trusts('198.51.100.1'))
  t.notOk(new TrustedProxies(['0.0.0.0/0']).trusts('2001:db8::1'))
  t.ok(new TrustedProxies(['::1']).trusts('::1'))
  t.ok(new TrustedProxies([]).none)
})

t.test('the nearest proxy counts for the protocol', async (t) => {
  t.equal(lastItem('http, https'), 'https')
  t.equal(lastItem('https'), 'https')
  t.equal(lastItem(''), '')
})
