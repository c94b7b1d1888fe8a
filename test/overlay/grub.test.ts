/** The choice of the slot as GRUB makes it: its script, run by bash, whose syntax is near enough, with GRUB's commands as functions. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import t from 'tap'

const SCRIPT = readFileSync(join(import.meta.dirname, '../../board/common/grub/grub.cfg'), 'utf8')
const EDITENV = '/usr/bin/grub-editenv'

/** Folders named as GRUB names partitions: its paths lead there by themselves. */
const SPARE = '(hd0,gpt1)/grub/spare'
const GRUBENV = '(hd0,gpt2)/grubenv'
const RESERVE = '(hd0,gpt2)/reserve'

const COMMANDS = `
set() { declare -g "\${1%%=*}=\${1#*=}"; }
regexp() { set disk=hd0; }
load_env() {
  local text name line
  text=$(${EDITENV} "$2" list 2>/dev/null) || return 1
  for name in "\${@:3}"; do
    while IFS= read -r line; do [ "\${line%%=*}" != "$name" ] || set "$line"; done <<<"$text"
  done
}
save_env() {
  local name
  ${EDITENV} "$2" list >/dev/null 2>&1 || return 1
  for name in "\${@:3}"; do ${EDITENV} "$2" set "$name=\${!name}"; done
}
linux() { [ -f "$1" ] && booted="\${*:2}"; }
initrd() { [ -f "$1" ]; }
boot() { echo "BOOT $booted"; exit 0; }
reboot() { echo REBOOT; exit 0; }
sleep() { :; }
root=hd0,gpt1
`

class Disk {
  readonly folder = mkdtempSync(join(tmpdir(), 'grub-'))

  constructor(t: Test) {
    t.teardown(() => rmSync(this.folder, { recursive: true, force: true }))
    for (const slot of ['(hd0,gpt3)', '(hd0,gpt4)']) {
      mkdirSync(join(this.folder, slot, 'boot'), { recursive: true })
      for (const name of ['vmlinuz', 'initrd.img']) writeFileSync(join(this.folder, slot, 'boot', name), '')
    }
    mkdirSync(join(this.folder, '(hd0,gpt1)/grub'), { recursive: true })
    mkdirSync(join(this.folder, '(hd0,gpt2)'))
    for (const file of [SPARE, GRUBENV, RESERVE]) this.set(file, 'ORDER=A B', 'A_OK=1', 'A_TRY=0', 'B_OK=0', 'B_TRY=0')
  }

  set(file: string, ...pairs: string[]): void {
    const { status, stderr } = spawnSync(EDITENV, [join(this.folder, file), 'set', ...pairs], { encoding: 'utf8' })
    if (status !== 0) throw new Error(stderr)
  }

  tear(...files: string[]): void {
    for (const file of files) writeFileSync(join(this.folder, file), Buffer.alloc(1024))
  }

  remove(path: string): void {
    rmSync(join(this.folder, path), { recursive: true })
  }

  variables(file: string): Record<string, string> {
    const { stdout } = spawnSync(EDITENV, [join(this.folder, file), 'list'], { encoding: 'utf8' })
    return Object.fromEntries(stdout.split('\n').map((line) => line.split('=') as [string, string]))
  }

  /** The slot that is started. */
  start(): string {
    const script = SCRIPT.replace(/ (\(\$disk,\$3\)\/[\w./]+)/g, ' "$1"')
    const { stdout, stderr } = spawnSync('bash', ['-c', COMMANDS + script], { cwd: this.folder, encoding: 'utf8' })
    if (stderr !== '') throw new Error(stderr)
    return /^BOOT .*rauc\.slot=([AB]) /m.exec(stdout)?.[1] ?? stdout
  }

  starts(count: number): string {
    return Array.from({ length: count }, () => this.start()).join('')
  }
}

t.test('each try is counted, and a slot that is never confirmed is left', async (t) => {
  const disk = new Disk(t)
  for (const file of [GRUBENV, RESERVE]) disk.set(file, 'ORDER=B A', 'B_OK=1')
  t.equal(disk.starts(4), 'BBBA')
  t.match(disk.variables(GRUBENV), { A_TRY: '1', B_TRY: '3', B_STAGE: 'kernel' })
  disk.set(GRUBENV, 'A_TRY=0')
  t.equal(disk.starts(2), 'AA')
})

t.test('a slot that cannot be loaded is passed over in the same start', async (t) => {
  const disk = new Disk(t)
  disk.set(GRUBENV, 'ORDER=B A', 'B_OK=1')
  disk.remove('(hd0,gpt4)/boot/vmlinuz')
  t.equal(disk.start(), 'A')
  t.equal(disk.variables(GRUBENV).B_STAGE, 'loader')
})

t.test('torn: the copy counts in its place', async (t) => {
  const disk = new Disk(t)
  disk.set(RESERVE, 'ORDER=B A', 'B_OK=1')
  disk.tear(GRUBENV)
  t.equal(disk.starts(4), 'BBBA')
})

t.test('neither can be read: the spare one knows the order, counts, and a broken release is left', async (t) => {
  const disk = new Disk(t)
  for (const file of [GRUBENV, RESERVE]) disk.set(file, 'ORDER=B A', 'B_OK=1')
  t.equal(disk.start(), 'B')
  t.match(disk.variables(SPARE), { ORDER: 'B A', A_OK: '1', B_OK: '1', A_TRY: '0', B_TRY: '0' })
  disk.tear(GRUBENV, RESERVE)
  t.equal(disk.starts(5), 'BBBAA')
  t.match(disk.variables(SPARE), { B_TRY: '3', A_TRY: '2' })
  for (const file of [GRUBENV, RESERVE]) {
    disk.remove(file)
    disk.set(file, 'ORDER=A B', 'A_OK=1', 'A_TRY=1', 'B_OK=1', 'B_TRY=0')
  }
  t.equal(disk.start(), 'A')
  t.match(disk.variables(GRUBENV), { A_TRY: '2' })
  t.match(disk.variables(SPARE), { ORDER: 'A B', A_TRY: '0', B_TRY: '0' }, 'what was counted there is over')
})

t.test('one that is forbidden stays so', async (t) => {
  const disk = new Disk(t)
  disk.remove('(hd0,gpt2)')
  t.equal(disk.starts(5), 'AAAAA')
})

t.test('no environment at all: what can be loaded is started', async (t) => {
  const disk = new Disk(t)
  disk.tear(GRUBENV, RESERVE)
  disk.remove(SPARE)
  t.equal(disk.start(), 'A')
  disk.remove('(hd0,gpt3)/boot/initrd.img')
  t.equal(disk.start(), 'B')
})
