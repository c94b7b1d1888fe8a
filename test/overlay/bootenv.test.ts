import { readFileSync, statSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { eachShell, LOADERS } from './machine.ts'

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

eachShell(t, 'the file is replaced as a whole, by RAUC too', (t, machine) => {
  machine.environment('ORDER=A B')
  const file = machine.at('/boot/state/grubenv')
  const before = statSync(file).ino
  t.equal(machine.run('bin/grub-editenv', [file, 'set', 'A_TRY=1', 'ORDER=B A']).status, 0)
  t.not(statSync(file).ino, before)
  t.match(machine.run('bin/grub-editenv', [file, 'list']).stdout, /^A_TRY=1$/m)
  t.same(machine.list('/boot/state'), ['grubenv'], 'nothing is left over')
  t.equal(statSync(file).size, 1024)
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
    t.equal(machine.run('bootstate-check').status, 0)
    t.equal(machine.variable('BOOT_ORDER'), 'B A')
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
