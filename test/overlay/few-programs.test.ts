/** A start with nothing to repair and nothing on trial starts few programs: each costs a small board a good part of a second. What a script may start is
 * all that its PATH has. */
import type { Test } from 'tap'
import t from 'tap'
import { Machine } from './machine.ts'

const ID = '0123456789abcdef0123456789abcdef'

const STAT = `for path; do
  case $path in
    -c | %*) ;;
    */journal) echo root systemd-journal 2755 directory ;;
    */ssh) echo root root 700 directory ;;
    */camera | */updates) echo camera camera 700 directory ;;
    *) echo root root 755 directory ;;
  esac
done`

/** A machine that has been confirmed in slot A; GRUB has counted this start. */
function settled(t: Test): Machine {
  const machine = new Machine(t)
  machine.environment('ORDER=A B', 'A_OK=1', 'A_TRY=0')
  machine.write('/etc/machine-id', `${ID}\n`)
  machine.write('/sys/class/dmi/id/product_serial', 'abc123\n')
  // The machine that tests has no user of that name.
  machine.stub('stat', STAT)
  for (const script of ['bootstate-check', 'data-seed', 'identity', 'boot-record']) t.equal(machine.run(script).status, 0, script)
  t.same(machine.ask('healthy'), ['done'])
  machine.boots('A', 2)
  machine.environment('A_TRY=1')
  return machine
}

for (const [script, ...programs] of [
  ['bootstate-check'],
  ['data-seed', 'stat'],
  ['identity'],
  ['network', 'mkdir'],
  ['boot-record', 'awk', 'date', 'flock', 'sync'],
] as const) {
  t.test(`${script}: ${programs.join(' ') || 'none'}`, async (t) => {
    const machine = settled(t)
    const result = machine.run(script, script === 'network' ? ['load'] : [], { env: { PATH: machine.only(...programs) } })
    t.same([result.status, result.stderr], [0, ''])
  })
}
