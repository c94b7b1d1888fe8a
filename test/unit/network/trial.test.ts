import fc from 'fast-check'
import t from 'tap'
import { nextPhase, type TrialEvent, type TrialPhase } from '../../../app/server/network/machine.ts'
import { confirmationProves } from '../../../app/server/network/proof.ts'
import type { AddressOrigin, NetworkInterface } from '../../../app/server/platform/index.ts'

t.test('whatever happens, a trial ends at most once, and is kept only if it was confirmed', async () => {
  const events: readonly TrialEvent[] = ['apply', 'done', 'failed', 'confirm', 'end']
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...events)), (list) => {
      let phase: TrialPhase | 'over' = 'announced'
      let before: TrialPhase = 'announced'
      for (const event of list) {
        if (phase === 'over') break
        const next = nextPhase(phase, event)
        if (next === null) continue
        before = phase
        phase = next
      }
      return phase !== 'over' || ['announced', 'applying', 'keeping', 'ending'].includes(before)
    }),
  )
  t.equal(nextPhase('trial', 'confirm'), 'keeping')
  t.equal(nextPhase('keeping', 'failed'), 'trial', 'still on trial')
  t.equal(nextPhase('applying', 'confirm'), null, 'not before it is in force')
  t.equal(nextPhase('applying', 'end'), null)
  t.equal(nextPhase('ending', 'confirm'), null, 'too late')
})

function iface(name: string, addresses: readonly (readonly [string, AddressOrigin | null])[]): NetworkInterface {
  const ipv4 = addresses.map(([address, origin]) => ({ address, prefix: 24, origin }))
  return { name, type: name === 'lo' ? 'loopback' : 'ethernet', ipv4, ipv6: [] } as unknown as NetworkInterface
}

const fixed = { method: 'static', address: '10.0.0.5', prefix: 24, gateway: null, dns: [] } as const
const dhcp = { method: 'dhcp' } as const

t.test('a static change is proved by a connection to the new address alone', async (t) => {
  const proves = (held: string, ...seen: readonly string[]) =>
    confirmationProves(fixed, [], 'eth0', new Set(seen), [
      iface('eth0', [[held, 'static']]),
      iface('eth1', [['10.1.0.5', 'dhcp']]),
    ])
  t.equal(proves('10.0.0.5', '10.0.0.5'), null)
  t.equal(proves('10.0.0.5', '10.1.0.5', '10.0.0.5'), null)
  t.match(proves('10.0.0.5', '10.1.0.5'), /over the new address/)
  t.match(proves('10.0.0.5'), /over the new address/)
  t.match(proves('10.0.0.4', '10.0.0.5'), /does not have/, 'the interface has it not, or not yet')
})

t.test('a change to DHCP is proved by any address but the one that was given up', async (t) => {
  const proves = (origin: AddressOrigin | null, ...seen: readonly string[]) =>
    confirmationProves(dhcp, ['10.0.0.5'], 'eth0', new Set(seen), [
      iface('lo', [['127.0.0.1', null]]),
      iface('eth0', [
        ['10.0.0.5', origin],
        ['10.0.0.77', 'dhcp'],
      ]),
    ])
  t.equal(proves(null, '10.0.0.77'), null)
  t.match(proves(null, '10.0.0.5'), /from now on/, 'networkd has not taken it away yet')
  t.match(proves('static', '10.0.0.5'), /from now on/)
  t.equal(proves('dhcp', '10.0.0.5'), null, 'the DHCP server has given the same one')
  t.match(proves(null, '127.0.0.1'), /from now on/, 'from the device itself')
  t.match(proves(null, '10.0.0.99'), /from now on/)
  t.match(proves(null), /from now on/)
})
