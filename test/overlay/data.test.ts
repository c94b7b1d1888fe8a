/** The data partition as a file of 16 MiB: the real e2fsck, mkfs.ext4 and debugfs; mounting is acted. */
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readFileSync, symlinkSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import t from 'tap'
import { eachShell, type Machine } from './machine.ts'

const SIZE = 16 * 1024 * 1024
const RECREATED = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/m
const DEVICE = '/dev/disk/by-partlabel/data'

/** A partition with the given files, and a mount that shows the folder `inside` in its place as long as there is a file system. */
function partition(machine: Machine, files: Readonly<Record<string, string>> = {}): string {
  const device = machine.at(DEVICE)
  machine.write(DEVICE, '')
  truncateSync(device, SIZE)
  const inside = join(machine.folder, 'inside')
  machine.write('/../inside/system/machine-id', 'x')
  spawnSync('/usr/sbin/mkfs.ext4', ['-q', '-F', device])
  const commands = ['mkdir /system', ...Object.keys(files).map((path) => `write ${machine.at(`/source/${path}`)} ${path}`)]
  for (const [path, content] of Object.entries(files)) {
    machine.write(`/source/${path}`, content)
    machine.write(`/../inside/${path}`, content)
  }
  debugfs(device, ...commands)
  machine.stub(
    'mount',
    `for at; do :; done\n/usr/sbin/dumpe2fs -h '${device}' >/dev/null 2>&1 && rmdir "$at" && ln -s '${inside}' "$at"`,
  )
  machine.stub('umount', '/usr/bin/rm "$1" && mkdir "$1"')
  return device
}

function debugfs(device: string, ...commands: string[]): string {
  return spawnSync('/usr/sbin/debugfs', ['-w', '-f', '-', device], { input: `${commands.join('\n')}\n`, encoding: 'utf8' }).stdout
}

function prepare(t: Test, machine: Machine): string {
  machine.environment('ORDER=A B', 'factory_reset=1', 'machine_id=1')
  const { status, stdout, stderr } = machine.run('data-prepare')
  t.equal(status, 0, stderr)
  return stdout
}

const inside = (machine: Machine, path: string) => machine.has(`/../inside/${path}`)

eachShell(t, 'a whole file system is left alone', (t, machine) => {
  partition(machine)
  t.notMatch(prepare(t, machine), /camera:/)
  t.same(machine.calls('mount'), [])
  t.equal(machine.variable('factory_reset'), '1', 'only what came on the command line counts')
})

eachShell(t, 'where it cannot be seen without mounting whether a reset is asked for, it is looked at mounted', (t, machine) => {
  partition(machine)
  machine.stub('debugfs', 'echo "debugfs: Cannot allocate memory while opening filesystem" >&2; exit 1')
  t.notMatch(prepare(t, machine), /factory reset/)
  t.equal(machine.calls('mount').length, 1)
})

eachShell(t, 'a damaged one is repaired, and keeps what is on it', (t, machine) => {
  const device = partition(machine, { 'system/note': 'kept' })
  const file = openSync(device, 'r+')
  writeSync(file, Buffer.alloc(2048, 0xaa), 0, 2048, 1024)
  closeSync(file)
  t.match(prepare(t, machine), /repaired/)
  t.match(debugfs(device, 'cat system/note'), /kept/)
  t.notOk(inside(machine, 'system/data-recreated'))
})

eachShell(t, 'beyond repair: made anew, and that is told', (t, machine) => {
  const device = partition(machine, { 'system/note': 'lost' })
  writeFileSync(device, Buffer.alloc(SIZE, 0x5a))
  // Nothing is written into it afterwards: no power cut comes in between.
  machine.stub('mount', 'exit 1')
  t.match(prepare(t, machine), /beyond repair/)
  t.equal(spawnSync('/usr/sbin/e2fsck', ['-fn', device]).status, 0)
  t.match(debugfs(device, 'cat system/data-recreated'), RECREATED)
  t.match(debugfs(device, 'stat system', 'stat system/data-recreated'), /Mode: +0755[\s\S]*Mode: +0644/)
  t.notOk(machine.has('/run/camera-data-anew'))
  t.same(debugfs(device, 'ls -p').match(/\/([a-z+]+)\/\//g), ['/lost+found//', '/system//'])
  prepare(t, machine)
  t.match(debugfs(device, 'cat system/data-recreated'), RECREATED)
})

eachShell(t, 'beyond repair when the boot loader asks for a reset: told too, and nothing else is to be done', (t, machine) => {
  const device = partition(machine)
  writeFileSync(device, Buffer.alloc(SIZE, 0x5a))
  machine.boots('A', 1, 'camera.factory_reset=1')
  t.notMatch(prepare(t, machine), /factory reset/)
  t.equal(machine.variable('factory_reset'), '')
  t.match(debugfs(device, 'cat system/data-recreated'), RECREATED)
})

eachShell(t, 'a check that fails throws nothing away as long as the kernel can mount it', (t, machine) => {
  const device = partition(machine)
  machine.stub('e2fsck', 'exit 8')
  const before = readFileSync(device)
  prepare(t, machine)
  t.equal(before.equals(readFileSync(device)), true)
  t.notOk(inside(machine, 'system/data-recreated'))
})

eachShell(t, 'a blank one gets a file system without further words', (t, machine) => {
  const device = partition(machine)
  truncateSync(device, 0)
  truncateSync(device, SIZE)
  t.match(prepare(t, machine), /blank/)
  t.equal(spawnSync('/usr/sbin/e2fsck', ['-fn', device]).status, 0)
  t.notOk(inside(machine, 'system/data-recreated'))
})

eachShell(t, 'one that cannot be read is not taken for a blank one', (t, machine) => {
  partition(machine)
  machine.stub('head', 'exit 1')
  machine.stub('e2fsck', 'exit 8')
  machine.stub('mkfs.ext4')
  prepare(t, machine)
  t.same(machine.calls('mkfs.ext4'), [])
})

/** An e2fsck that goes on, with the disc at work or not, until the machine was called in that way. */
const slow = (machine: Machine, call: RegExp, works: boolean) => `
  n=0
  until [ "$(grep -c '${call.source}' '${machine.folder}/calls')" -ge 5 ] || [ $n -ge 400 ]; do
    n=$((n + 1))
    ${works ? `echo "$n 0 0" >'${machine.at('/sys/class/block/data/stat')}'` : ''}
    /usr/bin/sleep 0.05
  done`

eachShell(t, 'as long as the disc works there is more time, but not where it hangs', (t, machine) => {
  partition(machine)
  machine.environment('ORDER=A B')
  machine.write('/sys/class/block/data/stat', '0 0 0\n')
  machine.stub('systemd-notify')
  machine.stub('sleep', 'exec /usr/bin/sleep "$@"')
  const env = { CAMERA_WATCH_SECONDS: '0.1' }
  machine.stub('e2fsck', slow(machine, /^systemd-notify EXTEND_TIMEOUT_USEC=[0-9]*$/, true))
  t.equal(machine.run('data-prepare', [], { env }).status, 0)
  t.ok(machine.calls('systemd-notify').length >= 5)
  machine.forgetCalls()
  machine.stub('e2fsck', slow(machine, /^sleep/, false))
  t.equal(machine.run('data-prepare', [], { env }).status, 0)
  t.same(machine.calls('systemd-notify'), [])
})

eachShell(t, 'without a partition nothing is made', (t, machine) => {
  machine.stub('mkfs.ext4')
  t.not(machine.run('data-prepare').status, 0)
  t.same(machine.calls('mkfs.ext4'), [])
})

eachShell(t, 'the reset that the server asked for', (t, machine) => {
  partition(machine, { 'system/factory-reset': 'keep=network\n', 'system/old': 'x' })
  t.match(prepare(t, machine), /factory reset: done/)
  t.notOk(inside(machine, 'system/old'))
  t.notOk(inside(machine, 'system/factory-reset'))
  t.equal(machine.calls('umount').length, 1)
})

eachShell(t, 'the reset that the boot loader asked for is withdrawn only when it is done', (t, machine) => {
  partition(machine, { 'system/old': 'x' })
  machine.boots('A', 1, 'camera.factory_reset=1')
  machine.environment('ORDER=A B', 'factory_reset=1')
  machine.stub('rm', 'exit 1')
  t.not(machine.run('data-prepare').status, 0)
  t.equal(machine.variable('factory_reset'), '1')
  machine.stub('rm', `PATH=/usr/bin:/bin exec rm "$@"`)
  t.match(prepare(t, machine), /factory reset: done/)
  t.equal(machine.variable('factory_reset'), '')
  t.equal(machine.variable('ORDER'), 'A B')
  t.notOk(inside(machine, 'system/old'))
})

eachShell(t, "what the server's user wrote under another number is given to it", (t, machine) => {
  machine.write('/data/camera/persistent/x', 'x')
  const own = String(process.getuid?.())
  machine.stub('chown')
  machine.stub('id', `echo ${own}`)
  t.equal(machine.run('data-seed').status, 0)
  t.same(machine.calls('chown -h'), [], 'it is its own already')
  machine.stub('id', 'echo 4711')
  t.equal(machine.run('data-seed').status, 0)
  if (machine.shell === 'busybox') return // its find runs the applet, not the stub
  const [given = ''] = machine.calls('chown -h')
  t.ok(given.includes(`${machine.at('/data/camera/persistent/x')}`))
  const calls = machine.calls('chown')
  t.ok(
    calls.indexOf(given) < calls.lastIndexOf(`chown camera:camera ${machine.at('/data/camera')}`),
    'the folder itself comes last',
  )
})

eachShell(t, 'folders that are as they shall be are left alone', (t, machine) => {
  t.equal(machine.run('data-seed').status, 0)
  const lines = [
    'root root 755',
    'root systemd-journal 2755',
    'root root 755',
    'root root 700',
    ...Array(3).fill('root root 755'),
  ]
  const right = [...lines, 'camera camera 700', 'camera camera 700'].map((line) => `${line} directory`)
  for (const name of ['chown', 'chmod']) machine.stub(name)
  machine.stub('stat', right.map((line) => `echo '${line}'`).join('\n'))
  t.equal(machine.run('data-seed').status, 0)
  t.same([...machine.calls('chown'), ...machine.calls('chmod')], [])
  machine.stub('stat', [...right.slice(1), right[0]].map((line) => `echo '${line}'`).join('\n'))
  t.equal(machine.run('data-seed').status, 0)
  t.equal(machine.calls('chmod').length, 9)
})

eachShell(t, 'of the reports of kernels that broke down the last ones stay', (t, machine) => {
  for (let number = 10; number < 35; number++) machine.write(`/data/system/state/pstore/17000000${number}/dmesg.txt`, 'x')
  t.equal(machine.run('data-seed').status, 0)
  const kept = machine.list('/data/system/state/pstore')
  t.same([kept.length, kept[0], kept.at(-1)], [20, '1700000015', '1700000034'])
})

eachShell(t, 'folders are made with their modes, whatever lies in their place', (t, machine) => {
  symlinkSync('/etc', machine.at('/data/camera'))
  machine.write('/data/system/journal', 'a file')
  t.equal(machine.run('data-seed').status, 0)
  t.same(machine.list('/data'), ['camera', 'system'])
  t.same(machine.list('/data/camera'), ['updates'])
  t.equal(machine.run('data-seed').status, 0)
})
