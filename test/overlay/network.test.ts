import { mkdirSync, rmSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { eachShell, Machine, SHELLS } from './machine.ts'

const LIVE = '/run/systemd/network/10-camera-eth0.network'
const STORED = '/data/system/network/10-camera-eth0.network'
const TRIAL = '/run/camera-network/eth0'

function wired(machine: Machine): void {
  mkdirSync(machine.at('/sys/class/net/eth0/device'), { recursive: true })
  mkdirSync(machine.at('/sys/class/net/lo'), { recursive: true })
}

eachShell(t, 'a trial is armed before it acts, lies in /run only, and is taken back', (t, machine) => {
  wired(machine)
  t.same(machine.ask('network-set eth0 static 192.168.1.20/24 192.168.1.1 1.1.1.1,2001:db8::1'), ['done'])
  t.match(machine.read(LIVE), /^Name=eth0$/m)
  for (const line of ['Address=192.168.1.20/24', 'Gateway=192.168.1.1', 'DNS=1.1.1.1', 'DNS=2001:db8::1'])
    t.ok(machine.read(LIVE).includes(`${line}\n`), line)
  t.notOk(machine.has(STORED))
  const calls = machine.calls()
  const order = ['systemd-run', 'networkctl reload', 'networkctl reconfigure eth0'].map((name) =>
    calls.findIndex((call) => call.startsWith(name)),
  )
  t.same(order, [...order].sort(), calls.join('\n'))
  t.notOk(order.includes(-1))
  t.match(calls.join('\n'), /--on-active=60s .*network revert eth0$/m)
  t.match(machine.ask('network-trials'), [/^data \{"interface":"eth0","expires":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"\}$/, 'done'])
  t.same(machine.ask('network-revert eth0'), ['done'])
  t.notOk(machine.has(LIVE))
  t.notOk(machine.has(TRIAL))
  t.match(machine.ask('network-revert eth0'), [/^failed NO_TRIAL /])
})

eachShell(t, 'what is kept comes back at boot and after later trials', (t, machine) => {
  wired(machine)
  machine.ask('network-set eth0 static 10.0.0.2/8 - -')
  t.same(machine.ask('network-keep eth0'), ['done'])
  const kept = machine.read(STORED)
  t.notMatch(kept, /^(Gateway|DNS)=/m)
  t.ok(machine.calls().includes('systemctl stop camera-network-revert-eth0.timer'))
  t.match(machine.ask('network-keep eth0'), [/^failed NO_TRIAL /])
  machine.ask('network-set eth0 dhcp')
  t.match(machine.read(LIVE), /^DHCP=yes$/m)
  machine.ask('network-revert eth0')
  t.equal(machine.read(LIVE), kept)
  machine.boots('A', 2)
  t.equal(machine.run('network', ['load']).status, 0)
  t.equal(machine.read(LIVE), kept)
  t.same(machine.ask('network-reset'), ['done'])
  t.notOk(machine.has(LIVE))
  t.notOk(machine.has(STORED))
  t.ok(machine.calls().includes('networkctl reconfigure eth0'))
})

eachShell(t, 'a trial that cannot be armed or put into force leaves all as it was', (t, machine) => {
  wired(machine)
  machine.stub('systemd-run', 'exit 1')
  t.match(machine.ask('network-set eth0 dhcp'), [/^failed NETWORK /])
  t.notOk(machine.has(LIVE))
  machine.stub('systemd-run')
  t.same(machine.ask('network-set eth0 static 10.0.0.2/8 - -'), ['done'])
  machine.stub('systemd-run', 'exit 1')
  t.match(machine.ask('network-set eth0 dhcp'), [/^failed NETWORK /])
  t.notOk(machine.has(LIVE), 'the trial before it, which has lost its timer, is over too')
  t.notOk(machine.has(TRIAL))
  machine.stub('systemd-run')
  machine.stub('networkctl', 'exit 1')
  t.match(machine.ask('network-set eth0 dhcp'), [/^failed NETWORK /])
  t.notOk(machine.has(LIVE))
  t.same(machine.ask('network-trials'), ['done'])
})

eachShell(t, 'what is on trial is taken back also while the interface is away', (t, machine) => {
  wired(machine)
  const change = () => t.same(machine.ask('network-set eth0 static 10.0.0.2/8 - -'), ['done'])
  change()
  machine.stub('networkctl', '[ "$1" != reconfigure ]')
  t.match(machine.ask('network-revert eth0'), [/^failed NETWORK /], 'one that is there must take them')
  machine.stub('networkctl')
  change()
  rmSync(machine.at('/sys/class/net/eth0'), { recursive: true })
  machine.stub('networkctl', '[ "$1" != reconfigure ]')
  machine.forgetCalls()
  t.equal(machine.run('network', ['revert', 'eth0']).status, 0, 'as the timer does it')
  t.notOk(machine.has(LIVE))
  t.notOk(machine.has(TRIAL))
  t.equal(machine.calls('networkctl')[0], 'networkctl reload', 'it comes back to what held before')
  t.match(machine.ask('network-set eth0 dhcp'), [/^failed NO_INTERFACE /])
})

eachShell(t, 'what is refused', (t, machine) => {
  wired(machine)
  for (const name of ['lo', 'eth1', '../eth0', '.', '..', 'a/b', 'averylongnameofaninterface'])
    t.match(machine.ask(`network-set ${name} dhcp`), [/^failed NO_INTERFACE /], name)
  for (const name of ['lo', '../eth0', '.', 'averylongnameofaninterface'])
    t.match(machine.ask(`network-revert ${name}`), [/^failed NO_INTERFACE /], name)
  for (const bad of [
    'dhcp x',
    'static',
    'static 10.0.0.1 - -',
    'static 10.0.0.1/33 - -',
    'static 10.0.0.256/8 - -',
    'static 10.0.0/8 - -',
    'static 10.0.0.0.1/8 - -',
    'static 010.0.0.1/8 - -',
    'static fe80::1/129 - -',
    'static fe80:::1/64 - -',
    'static 10.0.0.1/8 x -',
    'static 10.0.0.1/8 - 1.1.1.1,',
    'static 10.0.0.1/8 - ,',
    'static gg::1/64 - -',
    'other',
  ])
    t.match(machine.ask(`network-set eth0 ${bad}`), [/^failed (BAD_SETTINGS|BAD_REQUEST) /], bad)
  t.same(machine.calls(), [])
  t.notOk(machine.has(LIVE))
})

const number = fc.integer({ min: 0, max: 255 })
const ipv4 = fc.tuple(number, number, number, number).map((parts) => parts.join('.'))
for (const shell of SHELLS) {
  t.test(`any address that is one gets into the file as it is (${shell})`, async (t) => {
    const machine = new Machine(t, shell)
    wired(machine)
    fc.assert(
      fc.property(
        fc.oneof(
          ipv4,
          fc.ipV6().filter((text) => text.length < 40),
        ),
        fc.integer({ min: 1, max: 32 }),
        ipv4,
        (address, prefix, gateway) => {
          const answer = machine.ask(`network-set eth0 static ${address}/${prefix} ${gateway} ${gateway},${address}`)
          return (
            answer[0] === 'done' &&
            machine.read(LIVE).endsWith(`Address=${address}/${prefix}\nGateway=${gateway}\nDNS=${gateway}\nDNS=${address}\n`)
          )
        },
      ),
      { numRuns: 25, seed: 6 },
    )
  })
}
