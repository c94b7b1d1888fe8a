import { statSync } from 'node:fs'
import t from 'tap'
import { eachShell, type Machine } from './machine.ts'

const ID = '0123456789abcdef0123456789abcdef'
const OTHER_ID = 'fedcba9876543210fedcba9876543210'
const KEY = '/data/system/ssh/ssh_host_ed25519_key'

function start(machine: Machine, etc = ID): void {
  machine.environment('ORDER=A B')
  // The wait for a network that is not there.
  machine.stub('sleep')
  machine.write('/etc/machine-id', `${etc}\n`)
  machine.write('/proc/sys/kernel/hostname', 'camera\n')
  machine.write('/sys/class/net/lo/address', '00:00:00:00:00:00\n')
}

eachShell(t, 'the machine id of the first boot is kept, and survives both of its places', (t, machine) => {
  start(machine)
  t.equal(machine.run('identity').status, 0)
  t.equal(machine.variable('machine_id'), ID)
  t.equal(machine.read('/data/system/machine-id'), `${ID}\n`)
  // The environment was torn: this boot had to make up another id.
  machine.write('/etc/machine-id', `${OTHER_ID}\n`)
  machine.environment('machine_id=')
  machine.run('identity')
  t.equal(machine.variable('machine_id'), ID)
  // /data was made anew.
  machine.write('/data/system/machine-id', '')
  machine.run('identity')
  t.equal(machine.read('/data/system/machine-id'), `${ID}\n`)
})

eachShell(t, 'what is no machine id is not kept', (t, machine) => {
  for (const bad of ['', 'uninitialized', '0'.repeat(32), 'x'.repeat(32), `${ID}0`]) {
    start(machine, bad)
    machine.run('identity')
    t.equal(machine.variable('machine_id'), '', bad)
  }
})

eachShell(t, 'the serial number: device tree, firmware, hardware address, machine id', (t, machine) => {
  const serial = () => {
    machine.environment('serial=')
    machine.write('/data/system/serial', '')
    t.equal(machine.run('identity').status, 0)
    t.equal(machine.read('/proc/sys/kernel/hostname'), `camera-${machine.variable('serial')}\n`)
    return machine.variable('serial')
  }
  start(machine)
  t.equal(serial(), ID.slice(0, 12))
  machine.write('/sys/class/net/eth1/address', '52:54:00:AB:cd:02\n')
  machine.write('/sys/class/net/eth1/device', '')
  machine.write('/sys/class/net/eth0/address', '52:54:00:ab:cd:03\n')
  machine.write('/sys/class/net/eth0/device', '')
  machine.write('/sys/class/net/wg0/address', '00:54:00:ab:cd:01\n')
  t.equal(serial(), '525400abcd02')
  for (const filler of [
    '',
    'To be filled by O.E.M.',
    'None',
    'Default string',
    '0000000',
    '0123456789',
    'System Serial Number',
    'Not Specified',
  ]) {
    machine.write('/sys/class/dmi/id/product_serial', `${filler}\n`)
    t.equal(serial(), '525400abcd02', filler)
  }
  machine.write('/sys/class/dmi/id/product_serial', 'CAM/00-17 $(id)\n')
  t.equal(serial(), 'cam0017id')
  machine.write('/proc/device-tree/serial-number', '10000000ABCDEF\0')
  t.equal(serial(), '10000000abcdef')
})

eachShell(t, 'a serial number once found stays', (t, machine) => {
  start(machine)
  machine.run('identity')
  machine.write('/sys/class/dmi/id/product_serial', 'other\n')
  machine.run('identity')
  t.equal(machine.variable('serial'), ID.slice(0, 12))
  machine.environment('serial=')
  machine.run('identity')
  t.equal(machine.variable('serial'), ID.slice(0, 12), 'from /data')
})

eachShell(t, 'the SSH host key is made once, and again where a power cut has left an empty one', (t, machine) => {
  start(machine)
  machine.run('identity')
  const key = machine.read(KEY)
  t.match(key, /^-----BEGIN OPENSSH PRIVATE KEY-----/)
  t.equal(statSync(machine.at(KEY)).mode & 0o777, 0o600)
  machine.run('identity')
  t.equal(machine.read(KEY), key)
  machine.write(KEY, '')
  machine.write(`${KEY}.new`, 'half')
  machine.run('identity')
  t.match(machine.read(KEY), /^-----BEGIN OPENSSH PRIVATE KEY-----/)
  t.not(machine.read(KEY), key)
  t.same(machine.list('/data/system/ssh'), ['ssh_host_ed25519_key', 'ssh_host_ed25519_key.pub'])
})
