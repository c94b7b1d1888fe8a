/** What is written down of each boot, what becomes of an update, and the confirmation. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import type { Test } from 'tap'
import t from 'tap'
import { BOOT, LOADERS, type Loader, Machine, SHELLS } from './machine.ts'

const PENDING = '/data/system/boot/pending'
const PROVED = '/run/camera-proved'
const FAILURES = '/data/system/boot/failures'

interface Failure {
  readonly slot: string
  readonly version: string | null
  readonly installed: string | null
  readonly attempts: number
  readonly stage: string
  readonly reason: string
  readonly log: string[]
}

/** Boot 1 of slot A has installed version 2.0.0 into slot B. */
function installed(t: Test, loader: Loader, shell: (typeof SHELLS)[number]): Machine {
  const machine = new Machine(t, shell, loader)
  machine.environment('ORDER=A B', 'BOOT_ORDER=A B', 'A_OK=1', 'A_TRY=0')
  record(t, machine, 'A', 1)
  if (loader === 'grub') machine.environment('ORDER=B A', 'B_OK=1', 'B_TRY=0')
  else machine.environment('BOOT_ORDER=B A', 'BOOT_A_LEFT=3', 'BOOT_B_LEFT=3')
  const id = BOOT(1).replaceAll('-', '')
  machine.write(PENDING, `slot=B\nversion=2.0.0\nboot_id=${id}\ninstalled=2026-01-01T00:00:00Z\nstate=installed\n`)
  return machine
}

/** A boot that comes as far as the record, `number` telling it from others. */
function record(t: Test, machine: Machine, slot: 'A' | 'B', number: number): string {
  machine.boots(slot, number)
  const { status, stdout, stderr } = machine.run('boot-record')
  t.equal(status, 0, stderr)
  t.equal(stderr, '')
  return stdout
}

/** All tries are used up, as the boot loader counts them. */
const spent = (loader: Loader) => (loader === 'grub' ? ['B_TRY=3'] : ['BOOT_B_LEFT=0'])

function failure(machine: Machine): Failure {
  const [file = ''] = machine.list(FAILURES)
  return JSON.parse(machine.read(`${FAILURES}/${file}`)) as Failure
}

for (const shell of SHELLS) {
  for (const loader of LOADERS) {
    t.test(`an update that never came up (${loader}, ${shell})`, async (t) => {
      for (const stage of ['loader', 'kernel'] as const) {
        const machine = installed(t, loader, shell)
        machine.environment(...spent(loader), `B_STAGE=${stage}`, 'stage=kernel')
        t.match(record(t, machine, 'A', 5), /failed at the stage/)
        t.match(failure(machine), { slot: 'B', version: '2.0.0', installed: '2026-01-01T00:00:00Z', attempts: 3, stage, log: [] })
        t.notOk(machine.has(PENDING))
        if (loader === 'grub')
          t.same([machine.variable('ORDER'), machine.variable('B_OK'), machine.variable('A_TRY')], ['A B', '0', '0'])
        else
          t.same(
            [machine.variable('BOOT_ORDER'), machine.variable('BOOT_B_LEFT'), machine.variable('BOOT_A_LEFT')],
            ['A B', '0', '3'],
          )
        record(t, machine, 'A', 6)
        t.equal(machine.list(FAILURES).length, 1, 'told once')
      }
    })

    t.test(`one whose server is not healthy (${loader}, ${shell})`, async (t) => {
      const machine = installed(t, loader, shell)
      machine.stub('journalctl', `[ "$1" != -b ] || printf 'a "quoted" \\\\ line\\nanother\\twith a tab of boot %s\\n' "$2"`)
      machine.stub('systemctl', '[ "$1" != show ] || echo 4')
      for (const number of [2, 3, 4]) {
        t.match(record(t, machine, 'B', number), /on trial/)
        machine.write('/proc/cmdline', `rauc.slot=B camera.confirm_seconds=0\n`)
        t.equal(machine.run('confirm').status, 0)
      }
      t.equal(machine.calls('systemctl').filter((call) => call === 'systemctl reboot').length, 3)
      machine.environment(...spent(loader))
      record(t, machine, 'A', 5)
      t.match(failure(machine), {
        stage: 'server',
        attempts: 3,
        reason: /^The server was not healthy within 0 seconds; it ended and was started again 4 times$/,
        log: ['a "quoted" \\ line', `another with a tab of boot ${BOOT(4).replaceAll('-', '')}`],
      })
      t.match(
        machine.calls('journalctl').at(-1),
        /--unit=camera-server\.service/,
        'the last lines of all are those of the shutdown',
      )
    })

    t.test(`one that comes up and dies (${loader}, ${shell})`, async (t) => {
      const machine = installed(t, loader, shell)
      record(t, machine, 'B', 2)
      machine.environment(...spent(loader), 'B_STAGE=kernel')
      record(t, machine, 'A', 3)
      t.equal(failure(machine).stage, 'userspace')
      t.notMatch(machine.calls('journalctl').at(-1), /--unit/)
    })

    t.test(`a trial outlives the loss of /data (${loader}, ${shell})`, async (t) => {
      const lost = (machine: Machine) => rmSync(machine.at('/data/system/boot'), { recursive: true })
      const machine = installed(t, loader, shell)
      machine.environment('trial=B')
      lost(machine)
      mkdirSync(machine.at(FAILURES), { recursive: true })
      t.match(record(t, machine, 'B', 2), /on trial/)
      t.equal(machine.variable(loader === 'grub' ? 'B_TRY' : 'BOOT_B_LEFT'), loader === 'grub' ? '0' : '3', 'not counted anew')
      machine.write('/proc/cmdline', 'rauc.slot=B camera.confirm_seconds=0\n')
      t.equal(machine.run('confirm').status, 0)
      t.same(machine.calls('systemctl').at(-1), 'systemctl reboot')

      lost(machine)
      mkdirSync(machine.at(FAILURES), { recursive: true })
      machine.environment(...spent(loader), 'B_STAGE=kernel')
      t.match(record(t, machine, 'A', 3), /failed at the stage kernel/)
      t.match(failure(machine), { slot: 'B', version: null, installed: null, attempts: 3 })
      t.equal(machine.variable('trial'), '')
      t.notMatch(record(t, machine, 'A', 4), /trial|failed/)
    })

    t.test(`one that is confirmed (${loader}, ${shell})`, async (t) => {
      const machine = installed(t, loader, shell)
      t.ok(machine.has(PROVED), 'version 1.0.0 was not on trial')
      record(t, machine, 'B', 2)
      t.notOk(machine.has(PROVED), 'no other update comes in during the trial')
      t.equal(machine.variable('trial'), 'B', 'the boot loader keeps it, too')
      t.same(machine.ask('healthy'), ['done'])
      t.same(machine.calls('rauc'), ['rauc status mark-good'])
      t.same(machine.calls('systemctl'), ['systemctl --no-block stop camera-confirm.service'])
      t.notOk(machine.has(PENDING))
      t.equal(machine.variable('trial'), '')
      t.ok(machine.has(PROVED))
      machine.forgetCalls()
      t.equal(machine.run('confirm').status, 0, 'no wait, nothing to do')
      t.same(machine.ask('healthy'), ['done'], 'once more is as good')
      t.same(machine.calls(), [])
      t.match(machine.read('/data/system/boot/attempts'), / B 1\.0\.0 confirmed\n$/)
      machine.environment('ORDER=A B', 'BOOT_ORDER=A B')
      record(t, machine, 'A', 3)
      t.same(machine.list(FAILURES), [], 'what is confirmed has not failed')
    })

    t.test(`the wait is one, of the seconds that are asked for (${loader}, ${shell})`, async (t) => {
      const machine = installed(t, loader, shell)
      machine.stub('sleep', `: >'${machine.at('/run/camera-confirmed')}'`)
      for (const [argument, env, seconds] of [
        ['', {}, '180'],
        ['', { CAMERA_CONFIRM_SECONDS: '45' }, '45'],
        ['camera.confirm_seconds=7', { CAMERA_CONFIRM_SECONDS: '45' }, '7'],
        ['camera.confirm_seconds=x', {}, '180'],
      ] as const) {
        machine.boots('B', 2, argument)
        machine.forgetCalls()
        t.equal(machine.run('confirm', [], { env }).status, 0)
        t.same(machine.calls(), [`sleep ${seconds}`], 'and the confirmation that came meanwhile is seen')
      }
    })

    t.test(`a confirmed release is kept though its server is ill (${loader}, ${shell})`, async (t) => {
      const machine = new Machine(t, shell, loader)
      machine.environment('ORDER=A B', 'BOOT_ORDER=A B', 'A_TRY=2', 'BOOT_A_LEFT=1')
      machine.boots('A', 1, 'camera.confirm_seconds=0')
      machine.write('/dev/console', '')
      machine.stub('journalctl', `printf 'camera-server: no copy\\033[2J of "before"\\n'`)
      t.equal(machine.run('confirm').status, 0)
      t.same(machine.calls('systemctl'), [])
      t.match(machine.calls('journalctl'), [/ _SYSTEMD_UNIT=camera-server\.service$/])
      t.match(
        machine.read('/dev/console'),
        /slot A .* is kept\. The server's last words: camera-server: no copy \[2J of "before" *\n$/,
      )
      t.equal(machine.variable(loader === 'grub' ? 'A_TRY' : 'BOOT_A_LEFT'), loader === 'grub' ? '0' : '3')
    })
  }

  t.test(`an installation that was cut off is no failed update (${shell})`, async (t) => {
    const machine = installed(t, 'grub', shell)
    machine.write(PENDING, machine.read(PENDING).replace('state=installed', 'state=installing'))
    machine.environment('ORDER=B A', 'B_OK=0', 'A_TRY=1')
    t.match(record(t, machine, 'A', 2), /interrupted/)
    t.same(machine.list(FAILURES), [])
    t.notOk(machine.has(PENDING))
    t.equal(machine.variable('A_TRY'), '0')
    record(t, machine, 'A', 3)
    t.same(machine.list(FAILURES), [], 'nor at the next boot, though it once came first')
  })

  t.test(`nor is one forgotten that was complete when the power went, and then failed (${shell})`, async (t) => {
    const machine = installed(t, 'grub', shell)
    machine.write(PENDING, machine.read(PENDING).replace('state=installed', 'state=installing'))
    machine.environment('B_TRY=3', 'B_STAGE=kernel')
    record(t, machine, 'A', 2)
    t.match(failure(machine), { slot: 'B', stage: 'kernel', attempts: 3 })
    t.equal(machine.variable('B_OK'), '0')
  })

  t.test(`one that was complete when the power went is on trial (${shell})`, async (t) => {
    const machine = installed(t, 'grub', shell)
    machine.write(PENDING, machine.read(PENDING).replace('state=installed', 'state=installing'))
    t.match(record(t, machine, 'B', 2), /on trial/)
    t.ok(machine.has(PENDING))
  })

  for (const loader of LOADERS) {
    t.test(`one that was gone back to and is ill is given up for the one that ran (${loader}, ${shell})`, async (t) => {
      const machine = new Machine(t, shell, loader)
      machine.environment(
        'ORDER=A B',
        'BOOT_ORDER=A B',
        'A_OK=1',
        'B_OK=1',
        'A_TRY=0',
        'B_TRY=0',
        'BOOT_A_LEFT=3',
        'BOOT_B_LEFT=3',
      )
      machine.write('/dev/disk/by-partlabel/rootfs-b', Buffer.from('hsqs\0\0\0'))
      machine.write('/data/system/boot/releases', 'A=1.0.0\nB=0.9.0\n')
      record(t, machine, 'A', 1)
      t.same(machine.ask('healthy'), ['done'])
      t.same(machine.ask('activate B'), ['done'])
      machine.environment('ORDER=B A', 'BOOT_ORDER=B A', 'B_TRY=3', 'BOOT_B_LEFT=0')
      t.match(record(t, machine, 'B', 2), /on trial/)
      machine.run('confirm', [], { env: { CAMERA_CONFIRM_SECONDS: '0' } })
      t.same(machine.calls('systemctl').at(-1), 'systemctl reboot')
      machine.environment('ORDER=A B', 'BOOT_ORDER=A B')
      t.match(machine.ask('healthy'), [/^failed CONFIRM .*other slot/], 'whoever turned away from it gets no confirmation of it')
      machine.environment('ORDER=B A', 'BOOT_ORDER=B A')
      record(t, machine, 'A', 3)
      t.match(failure(machine), { slot: 'B', version: '0.9.0', installed: null, stage: 'server' })
      t.notOk(machine.has(PENDING))
      if (loader === 'grub')
        t.same(
          ['ORDER', 'A_OK', 'B_OK'].map((name) => machine.variable(name)),
          ['A B', '1', '0'],
        )
      else
        t.same(
          ['BOOT_ORDER', 'BOOT_A_LEFT', 'BOOT_B_LEFT'].map((name) => machine.variable(name)),
          ['A B', '3', '0'],
        )
    })
  }

  t.test(`a row of power cuts does not end in the other slot (${shell})`, async (t) => {
    const machine = new Machine(t, shell)
    machine.environment('ORDER=A B', 'A_OK=1', 'A_TRY=2')
    record(t, machine, 'A', 1)
    t.equal(machine.variable('A_TRY'), '0')
  })

  for (const loader of LOADERS) {
    t.test(`where it ends there all the same, that is told, and the way back is open (${loader}, ${shell})`, async (t) => {
      const machine = new Machine(t, shell, loader)
      machine.environment('ORDER=A B', 'BOOT_ORDER=A B', 'A_OK=1', 'B_OK=1', 'A_TRY=0', 'BOOT_A_LEFT=3')
      record(t, machine, 'A', 1)
      machine.environment('A_TRY=3', 'BOOT_A_LEFT=0', 'A_STAGE=kernel', 'B_TRY=1', 'BOOT_B_LEFT=2')
      record(t, machine, 'B', 5)
      t.match(failure(machine), { slot: 'A', version: '1.0.0', installed: null, attempts: 3, stage: 'kernel', log: [] })
      if (loader === 'grub')
        t.same(
          ['ORDER', 'A_OK', 'A_TRY', 'B_TRY'].map((name) => machine.variable(name)),
          ['B A', '1', '0', '0'],
        )
      else
        t.same(
          ['BOOT_ORDER', 'BOOT_A_LEFT', 'BOOT_B_LEFT'].map((name) => machine.variable(name)),
          ['B A', '3', '3'],
        )
      record(t, machine, 'B', 6)
      t.equal(machine.list(FAILURES).length, 1, 'told once')
    })
  }

  t.test(`a release that came past our own service has its trial too (${shell})`, async (t) => {
    const machine = new Machine(t, shell)
    machine.environment('ORDER=A B', 'A_OK=1', 'A_TRY=1')
    record(t, machine, 'A', 1)
    t.same(machine.ask('healthy'), ['done'])
    machine.environment('ORDER=B A', 'B_OK=1', 'B_TRY=1')
    machine.write('/etc/camera-release', 'VERSION=2.0.0\n')
    t.match(record(t, machine, 'B', 2), /on trial/)
    t.equal(machine.variable('B_TRY'), '1')
    machine.environment('B_TRY=3')
    machine.write('/etc/camera-release', 'VERSION=1.0.0\n')
    record(t, machine, 'A', 3)
    t.match(failure(machine), { slot: 'B', version: '2.0.0', installed: null, stage: 'userspace', attempts: 3 })
    t.notMatch(record(t, machine, 'A', 4), /on trial/, 'what was confirmed once needs no other trial')
  })

  t.test(`one over a release that was confirmed, in the same slot, has its trial (${shell})`, async (t) => {
    const machine = new Machine(t, shell)
    machine.environment('ORDER=A B', 'A_OK=1', 'B_OK=1', 'A_TRY=1')
    const runs = (version: string, number: number) => {
      machine.write('/etc/camera-release', `VERSION=${version}\n`)
      return record(t, machine, 'A', number)
    }
    runs('1.10', 1)
    t.same(machine.ask('healthy'), ['done'])
    for (const number of [2, 3]) t.notMatch(runs('1.10', number), /on trial/, 'what was confirmed stays so')
    t.ok(machine.has(PROVED))
    t.match(runs('1.1', 4), /on trial/, 'another version, not another number')
    t.match(machine.read(PENDING), /^slot=A\nversion=1\.1\n/)
    t.notOk(machine.has(PROVED))
    t.same(machine.ask('healthy'), ['done'])
    for (const number of [5, 6]) t.notMatch(runs('1.1', number), /on trial/)
  })

  t.test(`the client of the fleet server waits for the end of a trial (${shell})`, async (t) => {
    const machine = installed(t, 'grub', shell)
    machine.write('/data/system/hawkbit.conf', '[client]\n')
    machine.stub('systemctl', 'exit 1')
    record(t, machine, 'B', 2)
    t.notMatch(machine.calls().join('\n'), /hawkbit/)
    t.same(machine.ask('healthy'), ['done'], 'whether it starts or not')
    t.equal(machine.calls('systemctl').at(-1), 'systemctl --no-block start camera-hawkbit.service')
  })

  t.test(`which release runs in which slot (${shell})`, async (t) => {
    const machine = new Machine(t, shell, 'grub')
    machine.environment('ORDER=A B')
    record(t, machine, 'A', 1)
    t.equal(machine.read('/data/system/boot/releases'), 'A=1.0.0\n')
    machine.write('/etc/camera-release', 'VERSION=2.0.0\n')
    record(t, machine, 'B', 2)
    record(t, machine, 'B', 3)
    t.equal(machine.read('/data/system/boot/releases'), 'A=1.0.0\nB=2.0.0\n')
    machine.write('/etc/camera-release', 'VERSION=3.0.0\n')
    record(t, machine, 'A', 4)
    t.equal(machine.read('/data/system/boot/releases'), 'B=2.0.0\nA=3.0.0\n')
  })

  t.test(`the records are bounded (${shell})`, async (t) => {
    const machine = installed(t, 'grub', shell)
    writeFileSync(machine.at('/data/system/boot/attempts'), `${'2026-01-01T00:00:00Z x A 1.0.0 userspace\n'.repeat(500)}`)
    for (let number = 1; number <= 12; number++)
      machine.write(`${FAILURES}/${String(number).padStart(6, '0')}.json`, `{"n":${number}}\n`)
    record(t, machine, 'A', 7)
    t.equal(machine.read('/data/system/boot/attempts').split('\n').length, 201)
    t.equal(machine.list(FAILURES).length, 10)
    t.equal(machine.list(FAILURES).at(-1), '000013.json')
    const told = machine.ask('failures')
    t.equal(told.length, 11)
    t.match(told[0], /"version":"2\.0\.0"/)
    t.equal(told.at(-1), 'done')
    t.same(machine.ask('dismiss-failures'), ['done'])
    t.same(machine.ask('failures'), ['done'])
  })
}
