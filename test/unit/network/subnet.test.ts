import fc from 'fast-check'
import t from 'tap'
import {
  contains,
  isHost,
  isUnicast,
  maskOf,
  netmaskText,
  overlap,
  prefixOf,
  subnet,
  toNumber,
  toText,
} from '../../../app/server/network/subnet.ts'

const address = fc.integer({ min: 0, max: 0xffffffff })
const prefix = fc.integer({ min: 0, max: 32 })

t.test('addresses are numbers and back', async () => {
  fc.assert(fc.property(address, (number) => toNumber(toText(number)) === number))
})

t.test('what is no dotted address is none', async (t) => {
  for (const text of ['', '1.2.3', '1.2.3.4.5', '256.1.1.1', '010.1.1.1', '1.2.3.4 ', '0x7f.1.1.1', '1', '::1', '1.2.3.-4'])
    t.equal(toNumber(text), null, text)
})

t.test('masks and lengths say the same', async () => {
  fc.assert(
    fc.property(prefix, (length) => {
      return [`${length}`, `/${length}`, netmaskText(length)].every((text) => prefixOf(text) === length)
    }),
  )
})

t.test('of all masks, only the contiguous ones are masks', async () => {
  const masks = new Set(Array.from({ length: 33 }, (_, length) => maskOf(length)))
  const near = fc.tuple(prefix, address).map(([length, noise]) => (maskOf(length) ^ (1 << (noise % 32))) >>> 0)
  fc.assert(fc.property(fc.oneof(address, near), (mask) => (prefixOf(toText(mask)) !== null) === masks.has(mask)))
})

t.test('no netmask', (t) => {
  for (const text of ['', '33', '/33', '-1', '255.255.0.255', '0.255.255.255', '255.255.255', '2 4', '//24', 'ffffff00'])
    t.equal(prefixOf(text), null, text)
  t.end()
})

t.test('a subnet holds its own addresses, as many as it should, and overlaps as sets do', async () => {
  fc.assert(
    fc.property(address, prefix, (own, length) => {
      const net = subnet(own, length)
      return contains(net, own) && net.last - net.first + 1 === 2 ** (32 - length)
    }),
  )
  fc.assert(
    fc.property(address, prefix, address, prefix, (a, p, b, q) => {
      const [first, second] = [subnet(a, p), subnet(b, q)]
      // Subnets are nested or apart: the larger one then holds the other's address.
      const nested = p <= q ? contains(first, b) : contains(second, a)
      return overlap(first, second) === nested && overlap(second, first) === nested
    }),
  )
})

t.test('the first and the last address are no hosts, but in subnets of two', async () => {
  fc.assert(
    fc.property(address, fc.integer({ min: 1, max: 30 }), (own, length) => {
      const net = subnet(own, length)
      return !isHost(net, net.first) && !isHost(net, net.last) && isHost(net, net.first + 1) && isHost(net, net.last - 1)
    }),
  )
  fc.assert(
    fc.property(address, (own) => {
      const net = subnet(own, 31)
      return isHost(net, net.first) && isHost(net, net.last) && !isHost(net, (net.last + 1) % 2 ** 32)
    }),
  )
})

t.test('kinds of addresses', async (t) => {
  const of = (text: string) => isUnicast(toNumber(text) ?? -1)
  for (const text of ['10.0.0.1', '192.168.1.1', '172.16.0.1', '100.64.0.1', '223.255.255.1', '169.253.1.1']) t.ok(of(text), text)
  for (const text of ['0.0.0.1', '127.0.0.1', '169.254.1.1', '224.0.0.1', '240.0.0.1', '255.255.255.255']) t.notOk(of(text), text)
})
