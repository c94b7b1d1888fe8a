/**
 * A machine in a folder: the real scripts of the overlay below a root of their own, run by dash with the usual tools or by busybox with nothing but
 * its applets; what would act on this machine (systemctl, mount, rauc, …) is a stub that notes how it was called.
 */
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'

export const OVERLAY = join(import.meta.dirname, '../../overlay')
export const SHELLS = ['dash', 'busybox'] as const
export const LOADERS = ['grub', 'uboot'] as const
export type Shell = (typeof SHELLS)[number]
export type Loader = (typeof LOADERS)[number]

/** Not applets of every busybox, but on every image. */
const OTHER_TOOLS = ['grub-editenv', 'e2fsck', 'mkfs.ext4', 'debugfs', 'dumpe2fs', 'ssh-keygen', 'flock', 'mountpoint', 'setsid']
/** Whatever a script forgot to leave to a stub must not happen here. */
const DANGEROUS = ['reboot', 'poweroff', 'halt', 'mount', 'umount', 'hostname', 'mkfs.vfat', 'udevadm', 'init']
const LIMIT_MS = 30_000

export interface Result {
  readonly status: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly input?: string | Buffer
  readonly env?: Readonly<Record<string, string>>
  /** In a session of its own, so that a stub can kill it whole. */
  readonly session?: boolean
}

export class Machine {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'machine-')))
  readonly root = join(this.folder, 'root')
  private readonly stubs = join(this.folder, 'stubs')
  private readonly log = join(this.folder, 'calls')
  private readonly functions = join(this.folder, 'functions')
  private readonly path: string

  constructor(
    t: Test,
    readonly shell: Shell = 'dash',
    readonly loader: Loader = 'grub',
  ) {
    t.teardown(() => rmSync(this.folder, { recursive: true, force: true }))
    for (const folder of [this.stubs, this.root]) mkdirSync(folder)
    const interpreter = shell === 'dash' ? which('dash') : `${which('busybox')} sh`
    this.install(join(OVERLAY, 'common/usr/lib/camera'), '/usr/lib/camera', interpreter)
    cpSync(join(OVERLAY, loader, 'etc'), join(this.root, 'etc'), { recursive: true })
    this.path = `${this.stubs}:${shell === 'dash' ? '/usr/sbin:/usr/bin:/sbin:/bin' : this.applets()}`
    // A busybox that prefers its own applets to what PATH says would not see the stubs: functions come before applets.
    if (shell === 'busybox') appendFileSync(this.at('/usr/lib/camera/common'), `. '${this.functions}'\n`)
    for (const name of DANGEROUS) this.stub(name)
    for (const name of ['systemctl', 'journalctl', 'networkctl', 'systemd-run', 'rauc']) this.stub(name)
    this.write('/proc/cmdline', 'root=PARTLABEL=rootfs-a ro rauc.slot=A quiet\n')
    this.write('/proc/sys/kernel/random/boot_id', `${BOOT(1)}\n`)
    this.write(
      '/etc/camera-release',
      'VERSION=1.0.0\nBUILD=2026-01-02T03:04:05Z\nCOMPATIBLE=camera-server-test\nBOARD=test\nCHANNEL=development\n',
    )
    for (const folder of [
      '/run',
      '/dev',
      '/media',
      '/var',
      '/boot/state',
      '/data/system/boot/failures',
      '/data/system/ssh',
      '/data/system/network',
    ])
      mkdirSync(this.at(folder), { recursive: true })
    if (loader === 'uboot') this.stubUboot()
    this.stub('mountpoint', 'exit 0')
  }

  at(path: string): string {
    return join(this.root, path)
  }

  write(path: string, content: string | Buffer): void {
    mkdirSync(dirname(this.at(path)), { recursive: true })
    writeFileSync(this.at(path), content)
  }

  read(path: string): string {
    return readFileSync(this.at(path), 'utf8')
  }

  has(path: string): boolean {
    return existsSync(this.at(path))
  }

  list(path: string): string[] {
    return readdirSync(this.at(path)).sort()
  }

  /** The kernel's command line of this boot. */
  boots(slot: 'A' | 'B', number: number, ...more: string[]): void {
    this.write('/proc/cmdline', `root=PARTLABEL=x ro rauc.slot=${slot} quiet ${more.join(' ')}\n`)
    this.write('/proc/sys/kernel/random/boot_id', `${BOOT(number)}\n`)
    rmSync(this.at('/run'), { recursive: true, force: true })
    mkdirSync(this.at('/run'))
  }

  /** A command of that name notes its call, then does what `body` (sh) says. */
  stub(name: string, body = ''): void {
    const file = join(this.stubs, name)
    writeFileSync(file, `#!/bin/sh\nprintf '%s\\n' "\${0##*/} $*" >>'${this.log}'\n${body}\n`)
    chmodSync(file, 0o755)
    if (/^\w+$/.test(name)) appendFileSync(this.functions, `${name}() { '${file}' "$@"; }\n`)
  }

  /** How the stubs were called so far, line by line. */
  calls(of?: string): string[] {
    const all = existsSync(this.log) ? readFileSync(this.log, 'utf8').split('\n').filter(Boolean) : []
    return of === undefined ? all : all.filter((call) => call.startsWith(`${of} `))
  }

  forgetCalls(): void {
    rmSync(this.log, { force: true })
  }

  run(script: string, args: readonly string[] = [], { input = '', env = {}, session = false }: RunOptions = {}): Result {
    const command = [this.at(`/usr/lib/camera/${script}`), ...args]
    if (session) command.unshift(which('setsid'), '--wait')
    const [program = '', ...rest] = command
    const { status, signal, stdout, stderr, error } = spawnSync(program, rest, {
      input,
      timeout: LIMIT_MS,
      encoding: 'utf8',
      env: { PATH: this.path, CAMERA_ROOT: this.root, CAMERA_MAC_TRIES: '1', ...env },
    })
    if (error && (error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
    return { status, signal, stdout, stderr }
  }

  /** A PATH with nothing but these programs: whatever else a script starts fails. For dash; busybox finds its applets anyway. */
  only(...names: string[]): string {
    const folder = mkdtempSync(join(this.folder, 'only-'))
    for (const name of names)
      symlinkSync(existsSync(join(this.stubs, name)) ? join(this.stubs, name) : which(name), join(folder, name))
    return folder
  }

  /** One request to the privileged door; the lines of the answer. */
  ask(request: string | Buffer, env?: Readonly<Record<string, string>>): string[] {
    const input = typeof request === 'string' ? `${request}\n` : request
    return this.run('system', [], env ? { input, env } : { input })
      .stdout.split('\n')
      .filter(Boolean)
  }

  environment(...pairs: string[]): void {
    if (this.loader === 'grub' && !this.has('/boot/state/grubenv')) {
      spawnSync(which('grub-editenv'), [this.at('/boot/state/grubenv'), 'create'])
    }
    const { status, stderr } = this.run('bootenv', ['set', ...pairs])
    if (status !== 0) throw new Error(stderr)
  }

  variable(name: string): string {
    return this.run('bootenv', ['get', name]).stdout.trim()
  }

  private install(from: string, to: string, interpreter: string): void {
    cpSync(from, this.at(to), { recursive: true })
    for (const entry of readdirSync(this.at(to), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const file = join(entry.parentPath, entry.name)
      writeFileSync(file, readFileSync(file, 'utf8').replace(/^#!\/bin\/sh\n/, `#!${interpreter}\n`))
    }
  }

  /** A folder of busybox's applets and of what every image has beside them. */
  private applets(): string {
    const folder = join(this.folder, 'applets')
    mkdirSync(folder)
    for (const name of spawnSync(which('busybox'), ['--list'], { encoding: 'utf8' }).stdout.split('\n').filter(Boolean)) {
      if (!DANGEROUS.includes(name)) symlinkSync(which('busybox'), join(folder, name))
    }
    for (const name of OTHER_TOOLS) if (!existsSync(join(folder, name))) symlinkSync(which(name), join(folder, name))
    return folder
  }

  /** U-Boot's environment as lines of a file. */
  private stubUboot(): void {
    const file = join(this.folder, 'uboot-env')
    writeFileSync(file, '')
    this.stub('fw_printenv', `[ "$1" = -n ] && { sed -n "s/^$2=//p" '${file}'; exit; }; cat '${file}'`)
    this.stub('fw_setenv', `sed -i "/^$1=/d" '${file}'; [ $# -lt 2 ] || echo "$1=$2" >>'${file}'`)
  }
}

export const BOOT = (number: number): string => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`

function which(name: string): string {
  for (const folder of ['/usr/sbin', '/usr/bin', '/sbin', '/bin']) if (existsSync(join(folder, name))) return join(folder, name)
  throw new Error(`${name} is not on this machine`)
}

/** The same test with each shell. */
export function eachShell(t: Test, name: string, test: (t: Test, machine: Machine) => void, loader: Loader = 'grub'): void {
  for (const shell of SHELLS) {
    t.test(`${name} (${shell})`, (t) => {
      test(t, new Machine(t, shell, loader))
      t.end()
    })
  }
}
