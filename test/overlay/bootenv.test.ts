import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, readlinkSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { eachShell, LOADERS, type Machine } from './machine.ts'

for (const loader of LOADERS) {
  eachShell(
    t,
    `variables are set, read and removed: ${loader}`,
    (t, machine) => {
      machine.environment('machine_id=abc', 'ORDER=A B', 'BOOT_ORDER=A B')
      t.equal(machine.variable('machine_id'), 'abc')
      t.equal(machine.variable('ORDER'), 'A B')
      machine.environment('machine_id=', 'ORDER=B A')
      t.equal(machine.variable('machine_id'), '')
      t.equal(machine.variable('ORDER'), 'B A')
      t.equal(machine.run('bootenv', ['check']).status, 0)
      for (const bad of ['x', 'a b=c', 'a=$(id)', 'a=b;c', '1a=b', 'a=\n'])
        t.not(machine.run('bootenv', ['set', bad]).status, 0, bad)
      t.not(machine.run('bootenv', ['get', 'a;b']).status, 0)
      t.equal(machine.run('bootenv', ['list']).stdout.includes('$'), false)
    },
    loader,
  )
}

const FILE = '/boot/state/grubenv'
const RESERVE = '/boot/state/reserve'

/** What GRUB's own tool reads there. */
const listed = (machine: Machine, path: string) =>
  spawnSync('/usr/bin/grub-editenv', [machine.at(path), 'list'], { encoding: 'utf8' }).stdout

eachShell(t, 'both files are written in place, the copy first, by RAUC too', (t, machine) => {
  machine.environment('ORDER=A B', 'A_TRY=2', 'serial=x')
  const before = [FILE, RESERVE].map((path) => statSync(machine.at(path)).ino)
  t.equal(machine.run('bin/grub-editenv', [machine.at(FILE), 'set', 'A_TRY=1', 'ORDER=B A']).status, 0)
  t.same(
    [FILE, RESERVE].map((path) => statSync(machine.at(path)).ino),
    before,
    'no other file takes their place',
  )
  t.same(machine.list('/boot/state'), ['grubenv', 'reserve'], 'nothing is left over')
  for (const path of [FILE, RESERVE]) {
    t.equal(statSync(machine.at(path)).size, 1024)
    t.same(listed(machine, path).split('\n').sort(), ['', 'A_TRY=1', 'ORDER=B A', 'serial=x'], 'as GRUB understands it')
  }
  t.same(machine.run('bin/grub-editenv', [machine.at(FILE), 'list']).stdout, listed(machine, FILE))
  t.equal(machine.run('bin/grub-editenv', [machine.at(FILE), 'unset', 'A_TRY']).status, 0)
  t.notMatch(listed(machine, FILE), /A_TRY/)

  t.not(machine.run('bin/grub-editenv', [machine.at('/boot/other'), 'set', 'ORDER=A B']).status, 0)
})

eachShell(t, 'a write that fails at the copy has not touched the file', (t, machine) => {
  machine.environment('ORDER=A B')
  rmSync(machine.at(RESERVE))
  mkdirSync(machine.at(RESERVE))
  const before = readFileSync(machine.at(FILE))
  t.not(machine.run('bootenv', ['set', 'ORDER=B A']).status, 0)
  t.ok(before.equals(readFileSync(machine.at(FILE))))
})

eachShell(t, 'what says so already is not written', (t, machine) => {
  machine.environment('ORDER=A B', 'A_TRY=0')
  utimesSync(machine.at(FILE), 1, 1)
  machine.environment('A_TRY=0', 'absent=')
  t.equal(statSync(machine.at(FILE)).mtimeMs, 1000)
})

eachShell(t, 'a full block takes nothing more, and stays as it was', (t, machine) => {
  machine.environment('ORDER=A B', `long=${'x'.repeat(900)}`)
  const before = readFileSync(machine.at(FILE))
  t.match(machine.run('bootenv', ['set', `more=${'y'.repeat(100)}`]), { status: 1, stderr: /no room/ })
  t.ok(before.equals(readFileSync(machine.at(FILE))))
  t.ok(before.equals(readFileSync(machine.at(RESERVE))))
})

eachShell(t, 'a copy that lags behind is brought up to date, but for what counts the tries', (t, machine) => {
  machine.environment('ORDER=A B', 'A_TRY=0')
  spawnSync('/usr/bin/grub-editenv', [machine.at(FILE), 'set', 'A_TRY=1', 'stage=kernel', 'A_STAGE=kernel'])
  utimesSync(machine.at(RESERVE), 1, 1)
  t.equal(machine.run('bootstate-check').status, 0)
  t.equal(statSync(machine.at(RESERVE)).mtimeMs, 1000, 'not for a try alone')
  spawnSync('/usr/bin/grub-editenv', [machine.at(FILE), 'set', 'ORDER=B A'])
  t.equal(machine.run('bootstate-check').status, 0)
  t.equal(listed(machine, RESERVE), listed(machine, FILE))
})

eachShell(t, 'a torn environment is taken from its copy', (t, machine) => {
  machine.environment('ORDER=B A', 'A_TRY=2', 'machine_id=abc')
  t.equal(machine.run('bootstate-check').status, 0)
  for (const torn of [Buffer.alloc(0), Buffer.alloc(1024), readFileSync(machine.at('/boot/state/grubenv')).subarray(0, 512)]) {
    writeFileSync(machine.at('/boot/state/grubenv'), torn)
    t.not(machine.run('bootenv', ['check']).status, 0)
    t.match(machine.run('bootstate-check').stdout, /from its copy/)
    t.equal(machine.variable('ORDER'), 'B A')
    t.equal(machine.variable('machine_id'), 'abc')
  }
})

eachShell(t, 'without a copy it is made anew around the slot that runs', (t, machine) => {
  machine.boots('B', 1)
  t.equal(machine.run('bootstate-check').status, 0)
  t.equal(machine.variable('ORDER'), 'B A')
  t.equal(machine.variable('B_OK'), '1')
  t.equal(machine.variable('B_TRY'), '1')
  t.same(readFileSync(machine.at('/boot/state/reserve')), readFileSync(machine.at('/boot/state/grubenv')))
})

eachShell(
  t,
  "U-Boot's too",
  (t, machine) => {
    machine.boots('B', 1)
    const missing = machine.run('bootstate-check')
    t.equal(missing.status, 1)
    t.match(missing.stdout, /is missing$/m)
    t.equal(machine.variable('BOOT_ORDER'), '', 'not where its partition is not there yet')
    machine.write('/dev/disk/by-partlabel/bootstate', '')
    t.equal(machine.run('bootstate-check').status, 0)
    t.equal(machine.variable('BOOT_ORDER'), 'B A')
    t.equal(readlinkSync(machine.at('/var/lock')), '../run/lock', "the place of its tools' lock")
    t.equal(machine.variable('BOOT_B_LEFT'), '2')
    machine.environment('BOOT_B_LEFT=1')
    t.equal(machine.run('bootstate-check').status, 0)
    t.equal(machine.variable('BOOT_B_LEFT'), '1', 'what is whole is left alone')
  },
  'uboot',
)

eachShell(t, 'a partition that cannot be mounted gets a file system', (t, machine) => {
  machine.stub('mountpoint', 'exit 1')
  machine.stub('modprobe', 'exit 1')
  machine.write('/proc/filesystems', '\text4\n')
  machine.run('bootstate-check')
  t.same(machine.calls('mkfs.vfat'), [], 'to a kernel that does not know the file system every one looks damaged')
  machine.write('/proc/filesystems', '\text4\n\tvfat\n')
  t.equal(machine.run('bootstate-check').status, 0)
  t.same(machine.calls('mkfs.vfat'), [`mkfs.vfat -n BOOTSTATE ${machine.at('/dev/disk/by-partlabel/bootstate')}`])
  t.same(machine.calls('systemctl'), ['systemctl start boot-state.mount'])
})
