/** The privileged door: its verbs, and that nothing but a well-formed request ever gets through it. */
import { rmSync, symlinkSync } from 'node:fs'
import fc from 'fast-check'
import type { Test } from 'tap'
import t from 'tap'
import { eachShell, Machine, SHELLS } from './machine.ts'

const BUNDLE = '/data/camera/updates/a.raucb'
const INSTALL = `case "$1" in
  info) echo "RAUC_MF_COMPATIBLE='x'"; echo "RAUC_MF_VERSION='2.0.0'" ;;
  install) printf 'installing\\n  0%% Installing\\n 40%% Copying image to rootfs.1\\n100%% Installing done.\\n' ;;
esac`

eachShell(t, 'info', (t, machine) => {
  machine.write('/data/system/serial', 'abc123\n')
  machine.write('/etc/machine-id', '0123456789abcdef0123456789abcdef\n')
  machine.write('/dev/watchdog0', '')
  const [line = '', last] = machine.ask('info')
  t.same(JSON.parse(line.replace('data ', '')), {
    version: '1.0.0',
    build: '2026-01-02T03:04:05Z',
    compatible: 'camera-server-test',
    board: 'test',
    channel: 'development',
    slot: 'A',
    serial: 'abc123',
    machine_id: '0123456789abcdef0123456789abcdef',
    watchdog: true,
    data_recreated: null,
    pending: null,
  })
  t.equal(last, 'done')
  machine.write('/data/system/boot/pending', 'slot=B\nversion=2.0.0\nstate=installed\n')
  t.match(machine.ask('info')[0], '"pending":"B"}')
})

eachShell(t, 'slots', (t, machine) => {
  machine.environment('ORDER=A B', 'A_OK=1', 'A_TRY=0', 'machine_id=secret')
  machine.stub('rauc', `printf '{"booted":"A",\\n"slots":[]}'`)
  t.same(machine.ask('slots'), ['data {"booted":"A", "slots":[]}', 'data env ORDER=A,B A_OK=1 A_TRY=0', 'done'])
  machine.write('/data/system/boot/pending', 'slot=B\nversion=2.0.0\nboot_id=1\ninstalled=x\nstate=installed\n')
  t.equal(machine.ask('slots')[2], 'data pending slot=B version=2.0.0 installed=x state=installed')
  machine.write('/data/system/boot/releases', 'B=2.0.0\nA=1.0.0\nodd\n')
  t.equal(machine.ask('slots')[2], 'data releases B=2.0.0 A=1.0.0')
  machine.stub('rauc', 'exit 1')
  t.same(machine.ask('slots'), ['failed RAUC RAUC does not answer'])
})

eachShell(t, 'slots: while RAUC installs, its last words', (t, machine) => {
  const busy = `echo 'Error retrieving slot status via D-Bus: GDBus.Error: already processing a different method' >&2; exit 1`
  machine.environment('ORDER=A B', 'B_OK=1')
  machine.stub('rauc', busy)
  t.match(machine.ask('slots'), [/^failed RAUC /], 'it was not asked before in this boot')
  machine.stub('rauc', `echo 'a warning' >&2; echo '{"booted":"A"}'`)
  t.equal(machine.ask('slots')[0], 'data {"booted":"A"} ')
  machine.stub('rauc', busy)
  machine.environment('B_OK=0')
  machine.write('/data/system/boot/pending', 'slot=B\nversion=2.0.0\nstate=installing\n')
  const pending = 'data pending slot=B version=2.0.0 state=installing'
  t.same(machine.ask('slots'), ['data {"booted":"A"} ', 'data env ORDER=A,B B_OK=0', pending, 'done'], 'all else is of now')
  rmSync(machine.at('/data/system/boot/pending'))
  t.equal(machine.ask('slots')[2], 'data pending slot=B state=installing', 'an installation by others')
  machine.stub('rauc', `echo '{"booted":"A","more":1}'; exit 1`)
  t.same(machine.ask('slots'), ['failed RAUC RAUC does not answer'], 'broken is not busy')
  machine.stub('rauc', busy)
  t.equal(machine.ask('slots')[0], 'data {"booted":"A"} ', 'and nothing to be kept')
  t.same(
    machine.list('/run').filter((name) => name.includes('rauc')),
    ['camera-rauc-status'],
  )
})

eachShell(t, 'install', (t, machine) => {
  machine.environment('ORDER=A B')
  machine.write(BUNDLE, 'bundle')
  machine.stub('rauc', INSTALL)
  t.same(machine.ask(`install ${BUNDLE}`), [
    'progress 0 Installing',
    'progress 40 Copying image to rootfs.1',
    'progress 100 Installing done.',
    'done',
  ])
  t.same(machine.calls('rauc'), [`rauc info --output-format=shell ${machine.at(BUNDLE)}`, `rauc install ${machine.at(BUNDLE)}`])
  t.match(
    machine.read('/data/system/boot/pending'),
    /^slot=B\nversion=2\.0\.0\nboot_id=[0-9]{32}\ninstalled=\S+Z\nstate=installed\n$/,
  )
  t.equal(machine.variable('trial'), 'B')
})

eachShell(t, 'install: what cannot be written down is not begun', (t, machine) => {
  machine.write(BUNDLE, 'bundle')
  machine.stub('rauc', INSTALL)
  t.match(machine.ask(`install ${BUNDLE}`), [/^failed IO /], 'the boot loader has no environment')
  t.equal(machine.calls('rauc install').length, 0)
  t.notOk(machine.has('/data/system/boot/pending'))
})

eachShell(t, 'install: what RAUC refuses', (t, machine) => {
  machine.environment('ORDER=A B')
  machine.write(BUNDLE, 'bundle')
  for (const [words, code] of [
    ['signature verification failed: Verify error: unable to get local issuer certificate', 'SIGNATURE'],
    ["Compatible mismatch: Expected 'a' but bundle manifest has 'b'", 'COMPATIBLE'],
    ['No space left on device', 'IO'],
    ['something else', 'INSTALL'],
  ] as const) {
    machine.stub('rauc', `case "$1" in info) exit 0 ;; *) echo 'LastError: ${words.replaceAll("'", '"')}'; exit 1 ;; esac`)
    const [answer = ''] = machine.ask(`install ${BUNDLE}`)
    t.match(answer, new RegExp(`^failed ${code} `), words)
    t.notOk(machine.has('/data/system/boot/pending'))
    t.equal(machine.variable('trial'), '')
  }
  machine.stub('rauc', `echo 'signature verification failed' >&2; exit 1`)
  machine.forgetCalls()
  t.match(machine.ask(`install ${BUNDLE}`)[0], /^failed SIGNATURE /)
  t.equal(machine.calls('rauc').length, 1, 'not even tried')
})

eachShell(t, 'install: an update that waits for its trial is not forgotten over one that fails', (t, machine) => {
  const waiting = 'slot=B\nversion=2.0.0\nboot_id=1\ninstalled=x\nstate=installed\n'
  machine.write(BUNDLE, 'bundle')
  machine.write('/dev/disk/by-partlabel/rootfs-b', Buffer.from('hsqs\0\0\0'))
  machine.stub('rauc', `case "$1" in info) exit 0 ;; *) echo 'LastError: no loop device'; exit 1 ;; esac`)
  machine.environment('ORDER=B A', 'A_OK=1', 'A_TRY=0', 'B_OK=1', 'B_TRY=0')
  machine.write('/data/system/boot/pending', waiting)
  t.match(machine.ask(`install ${BUNDLE}`), [/^failed INSTALL /])
  t.equal(machine.read('/data/system/boot/pending'), waiting)
  machine.environment('B_OK=0')
  t.match(machine.ask(`install ${BUNDLE}`), [/^failed INSTALL /])
  t.notOk(machine.has('/data/system/boot/pending'), 'RAUC has begun: nothing of it is left')
})

eachShell(t, 'install: not while the release that runs is on trial', (t, machine) => {
  machine.write(BUNDLE, 'bundle')
  machine.stub('rauc', INSTALL)
  machine.write('/data/system/boot/pending', 'slot=A\n')
  t.match(machine.ask(`install ${BUNDLE}`), [/^failed BUSY .*on trial/])
  t.same(machine.calls('rauc'), [])
  t.equal(machine.read('/data/system/boot/pending'), 'slot=A\n')
})

eachShell(t, 'install: only from where bundles lie', (t, machine) => {
  machine.environment('ORDER=A B')
  machine.stub('rauc', INSTALL)
  machine.write('/etc/passwd.raucb', 'x')
  machine.write('/data/camera/updates/sub/b.raucb', 'x')
  machine.write('/media/stick/c.raucb', 'x')
  machine.write('/data/camera/other.raucb', 'x')
  symlinkSync(machine.at('/etc/passwd.raucb'), machine.at('/data/camera/updates/link'))
  symlinkSync(machine.at('/etc'), machine.at('/data/camera/updates/folder'))
  for (const path of [
    '/etc/passwd.raucb',
    '/data/camera/other.raucb',
    '/data/camera/updates/',
    '/data/camera/updates/sub',
    '/data/camera/updates/missing',
    '/data/camera/updates/link',
    '/data/camera/updates/folder/passwd.raucb',
    '/data/camera/updates/../other.raucb',
    '/media/c.raucb',
    'a.raucb',
    '-x',
  ])
    t.match(machine.ask(`install ${path}`), [/^failed NOT_FOUND /], path)
  t.same(machine.calls('rauc'), [])
  t.equal(machine.ask('install /data/camera/updates/sub/b.raucb').at(-1), 'done')
  t.equal(machine.ask('install /media/stick/c.raucb').at(-1), 'done')
  machine.stub('mountpoint', 'exit 1')
  t.match(machine.ask('install /media/stick/c.raucb'), [/^failed NOT_FOUND /], 'no medium is mounted there')
})

eachShell(t, 'activate', (t, machine) => {
  machine.environment('ORDER=A B', 'A_OK=1', 'A_TRY=0', 'B_OK=1', 'B_TRY=0')
  t.match(machine.ask('activate B'), [/^failed NOT_BOOTABLE /], 'nothing in the slot')
  machine.write('/dev/disk/by-partlabel/rootfs-b', Buffer.from('hsqs\0\0\0'))
  machine.write('/data/system/boot/pending', 'slot=B\n')
  t.match(machine.ask('activate B'), [/^failed NOT_BOOTABLE .*not confirmed/], 'an update does without no trial')
  t.same(machine.calls('rauc'), [])
  machine.write('/data/system/boot/pending', 'slot=A\n')
  machine.environment('trial=A')
  t.same(machine.ask('activate B'), ['done'])
  t.same(machine.calls('rauc'), ['rauc status mark-active rootfs.1'])
  t.notOk(machine.has('/data/system/boot/pending'))
  t.equal(machine.variable('A_OK'), '0', 'given up before it was confirmed')
  t.equal(machine.variable('trial'), '')
  machine.environment('A_OK=1')
  machine.write('/data/system/boot/pending', 'slot=B\n')
  t.same(machine.ask('activate A'), ['done'], 'an update that was not tried yet is called off')
  t.match(machine.ask('activate B'), [/^failed NOT_BOOTABLE /], 'and does not become a release to go back to by that')
  machine.environment('B_OK=1', 'B_TRY=3')
  t.match(machine.ask('activate B'), [/^failed NOT_BOOTABLE /], 'given up by the boot loader')
  t.match(machine.ask('activate C'), [/^failed BAD_REQUEST /])
})

eachShell(t, 'a release that is gone back to has a trial, and stays one to go back to when that is called off', (t, machine) => {
  const pending = '/data/system/boot/pending'
  machine.environment('ORDER=A B', 'A_OK=1', 'A_TRY=0', 'B_OK=1', 'B_TRY=0')
  machine.write('/dev/disk/by-partlabel/rootfs-b', Buffer.from('hsqs\0\0\0'))
  machine.write('/data/system/boot/releases', 'A=1.0.0\nB=0.9.0\n')

  machine.stub('rauc', `cat '${machine.at(pending)}'; exit 1`)
  t.match(machine.ask('activate B'), ['failed ACTIVATE state=return'], 'written down before RAUC makes it the next')
  t.notOk(machine.has(pending))
  t.equal(machine.variable('trial'), '')

  machine.stub('rauc')
  t.same(machine.ask('activate B'), ['done'])
  t.match(machine.read(pending), /^slot=B\nversion=0\.9\.0\nboot_id=.+\ninstalled=\nstate=return\n$/)
  t.equal(machine.variable('trial'), 'B')

  t.same(machine.ask('activate A'), ['done'])
  t.notOk(machine.has(pending))
  t.same(
    ['trial', 'A_OK', 'B_OK'].map((name) => machine.variable(name)),
    ['', '1', '1'],
  )
  t.same(machine.ask('activate B'), ['done'], 'again')
})

eachShell(t, 'factory-reset, reboot, poweroff', (t, machine) => {
  for (const keep of ['-', 'network', 'users', 'network,users', 'users,network']) {
    t.same(machine.ask(`factory-reset ${keep}`), ['done'])
    t.equal(machine.read('/data/system/factory-reset'), `keep=${keep}\nby=server\n`)
    t.same(machine.ask('factory-reset off'), [`data ${keep}`, 'done'])
    t.notOk(machine.has('/data/system/factory-reset'))
  }
  for (const bad of ['everything', 'network,', '.', 'users,users'])
    t.match(machine.ask(`factory-reset ${bad}`), [/^failed BAD_REQUEST /])
  t.same(machine.ask('factory-reset off'), ['done'], 'there is none')
  machine.write('/data/system/factory-reset', 'keep=-\n')
  t.same(machine.ask('factory-reset off'), ['done'])
  t.equal(machine.read('/data/system/factory-reset'), 'keep=-\n', 'that of the button stays')
  t.same(machine.ask('reboot'), ['done'])
  t.same(machine.ask('poweroff'), ['done'])
  t.same(machine.calls('systemctl'), ['systemctl --no-block reboot', 'systemctl --no-block poweroff'])
})

eachShell(t, 'factory-reset: a write that takes long does not come after its withdrawal', (t, machine) => {
  // Meanwhile another request comes.
  const door = machine.at('/usr/lib/camera/system')
  machine.stub(
    'sync',
    `[ -n "$AGAIN" ] || { export AGAIN=1; echo 'factory-reset off' | '${door}' >'${machine.at('/off')}' 9>&-; }`,
  )
  t.same(machine.ask('factory-reset -'), ['done'])
  t.match(machine.read('/off'), /^failed BUSY /)
  t.same(machine.ask('factory-reset off'), ['data -', 'done'])
})

eachShell(t, 'hawkbit', (t, machine) => {
  const on = 'hawkbit on updates.test:8443 default camera-1 target'
  if (machine.shell === 'busybox') t.match(machine.ask(on), [/^failed UNSUPPORTED /])
  machine.stub('rauc-hawkbit-updater')
  t.match(machine.ask(on), [/^failed NOT_FOUND /])
  machine.write('/etc/secret', 'root-secret')
  machine.write('/data/camera/updates/x', '')
  symlinkSync(machine.at('/etc/secret'), machine.at('/data/camera/updates/hawkbit-token'))
  t.match(machine.ask(on), [/^failed NOT_FOUND /], 'no link is followed')
  rmSync(machine.at('/data/camera/updates/hawkbit-token'))
  machine.write('/data/camera/updates/hawkbit-token', 'tok-en\nssl = false\n')
  machine.write('/data/system/serial', 'abc\n')
  t.same(machine.ask(on), ['done'])
  const file = machine.read('/data/system/hawkbit.conf')
  t.match(file, /^hawkbit_server = updates\.test:8443$/m)
  t.match(file, /^ssl = true$/m)
  t.match(file, /^auth_token = tok-enssl=false$/m, 'a token is one word')
  t.match(machine.calls('systemctl'), [/^systemctl restart /])
  machine.forgetCalls()
  t.same(machine.ask(on), ['done'])
  t.match(machine.calls('systemctl'), [/^systemctl start /], 'what runs as it shall is not cut off')
  machine.forgetCalls()
  t.same(machine.ask(on.replace('camera-1', 'camera-2')), ['done'])
  t.match(machine.calls('systemctl'), [/^systemctl restart /])
  t.match(machine.read('/data/system/hawkbit.conf'), /^target_name = camera-2$/m)
  t.notMatch(machine.calls().join('\n'), /tok-en/)
  t.match(machine.ask('hawkbit on x y z other'), [/^failed BAD_REQUEST /])
  t.match(machine.ask(on.replace('updates.test', 'http://updates.test')), [/^failed BAD_REQUEST .*host/], 'no other scheme')
  t.same(machine.ask('hawkbit off'), ['done'])
  t.notOk(machine.has('/data/system/hawkbit.conf'))
})

eachShell(t, 'what is no request', (t, machine) => {
  const refused = (request: string | Buffer, name?: string) =>
    t.match(machine.ask(request), [/^failed BAD_REQUEST /], name ?? String(request))
  for (const request of [
    '',
    ' ',
    'info ',
    ' info',
    'info  x',
    'INFO',
    'nothing',
    'info x',
    'install',
    'install a b',
    'activate',
    'in\tfo',
    'info;id',
  ])
    refused(request)
  for (const request of [
    'info $(id)',
    'info `id`',
    "info '",
    'info "',
    'info *',
    'info ?',
    'info \\',
    'info ~',
    'info #',
    'info ä',
  ])
    refused(request)
  refused(Buffer.from('info'), 'no newline')
  refused(Buffer.from('in\0fo\n'), 'NUL')
  refused(Buffer.from('info\r\n'), 'carriage return')
  refused(Buffer.from([0xff, 0xfe, 0x0a]), 'no text')
  refused(`install /${'a'.repeat(255)}`, 'a word of 256')
  refused(`info ${'a '.repeat(600)}`, 'too long a line')
  t.equal(machine.ask(Buffer.from('info\nreboot\n')).at(-1), 'done', 'one line only')
  t.same(machine.calls(), [])
})

/** All that a request can set off on the machine; their arguments must be what the request's grammar allows. */
const WATCHED = ['rauc', 'systemctl', 'systemd-run', 'networkctl']
const SEED = 20261121
/** What lies in the machine's root and in its /etc. */
const KNOWN = new Set([
  'boot',
  'data',
  'dev',
  'etc',
  'media',
  'proc',
  'run',
  'sys',
  'usr',
  'var',
  'camera-release',
  'rauc',
  'fw_env.config',
  'machine-id',
  'tmp',
])
const VERBS = [
  'info',
  'slots',
  'install',
  'activate',
  'healthy',
  'failures',
  'factory-reset',
  'network-set',
  'network-keep',
  'hawkbit',
  'reboot',
]

const bytes = fc.uint8Array({ minLength: 0, maxLength: 1100 }).map((array) => Buffer.from(array))
const nearly = fc
  .tuple(
    fc.constantFrom(...VERBS),
    fc.array(
      fc.oneof(
        fc.string({ maxLength: 40 }),
        fc.constantFrom(
          'eth0',
          'B',
          '../../etc/shadow',
          '/data/camera/updates/../../../etc',
          '-o',
          'static',
          'dhcp',
          '10.0.0.1/24',
          '$(reboot)',
          ';reboot',
          '\0',
          '--help',
        ),
      ),
      { maxLength: 6 },
    ),
    fc.constantFrom(' ', '  ', '\t', ' \0'),
  )
  .map(([verb, words, between]) => Buffer.from(`${[verb, ...words].join(between)}\n`))

for (const shell of SHELLS) {
  t.test(`no odd bytes reach a command, no path escapes (${shell})`, async (t) => {
    const machine = new Machine(t, shell)
    watch(t, machine)
    fc.assert(
      fc.property(fc.oneof(bytes, nearly), (request) => {
        machine.forgetCalls()
        const result = machine.run('system', [], { input: request })
        const lines = result.stdout.split('\n').filter(Boolean)
        if (!/^(done$|failed [A-Z_]+ )/.test(lines.at(-1) ?? '')) throw new Error(`no last word: ${JSON.stringify(result)}`)
        if (!lines.every((line) => /^[\x20-\x7e]*$/.test(line)))
          throw new Error(`odd bytes in the answer: ${JSON.stringify(lines)}`)
        for (const call of machine.calls()) {
          if (!/^[A-Za-z0-9._:,/=+@%\- ]*$/.test(call)) throw new Error(`reached a command: ${JSON.stringify(call)}`)
          if (/etc|shadow|\.\./.test(call)) throw new Error(`escaped: ${call}`)
        }
        const strays = [...machine.list('/'), ...machine.list('/etc')].filter((name) => !KNOWN.has(name))
        if (strays.length > 0) throw new Error(`made ${strays.join()}`)
      }),
      { numRuns: 150, seed: SEED },
    )
  })
}

function watch(t: Test, machine: Machine): void {
  machine.environment('ORDER=A B', 'A_OK=1', 'B_OK=1', 'A_TRY=0', 'B_TRY=0')
  machine.write('/sys/class/net/eth0/address', '52:54:00:12:34:56\n')
  machine.write('/sys/class/net/eth0/device', '')
  machine.write('/dev/disk/by-partlabel/rootfs-b', 'hsqs')
  for (const name of WATCHED) machine.stub(name)
  t.equal(machine.ask('info').at(-1), 'done')
}
