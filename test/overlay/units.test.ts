/** The units as systemd reads them, the firewall as nft does, and that nothing names what is not there. */
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { scratchFolder } from '../support/scratch.ts'
import { LOADERS, OVERLAY } from './machine.ts'

const UNITS = 'usr/lib/systemd/system'
/** Programs of the image that the units start; here only their names matter. */
const PROGRAMS = ['usr/bin/camera-server', 'usr/bin/rauc-hawkbit-updater', 'usr/sbin/sshd', 'usr/sbin/nft']
const MAX_EXPOSURE = 3

for (const loader of LOADERS) {
  t.test(loader, async (t) => {
    const root = scratchFolder(t, 'units')
    cpSync('/usr/lib/systemd/system', join(root, UNITS), { recursive: true, verbatimSymlinks: true })
    for (const part of ['common', loader]) cpSync(join(OVERLAY, part), root, { recursive: true, verbatimSymlinks: true })
    for (const program of PROGRAMS) {
      mkdirSync(join(root, dirname(program)), { recursive: true })
      writeFileSync(join(root, program), '#!/bin/sh\n')
      chmodSync(join(root, program), 0o755)
    }
    const names = ['common', loader]
      .map((part) => join(OVERLAY, part, UNITS))
      .filter((folder) => existsSync(folder))
      // A link to /dev/null masks a unit: there is nothing to verify.
      .flatMap((folder) => readdirSync(folder, { withFileTypes: true }).filter((entry) => !entry.isSymbolicLink()))
      .map(({ name }) => name)
      .filter((name) => /\.(service|socket|mount)$/.test(name))
      .map((name) => name.replace('@.', '@x.'))
    t.ok(names.length >= 15)
    const verify = spawnSync('systemd-analyze', ['verify', `--root=${root}`, '--man=no', '--recursive-errors=no', ...names], {
      encoding: 'utf8',
    })
    t.equal(verify.stderr, '')
    t.equal(verify.status, 0)

    for (const name of ['camera-server.service', 'camera-hawkbit.service']) {
      const security = spawnSync('systemd-analyze', ['security', '--offline=yes', `--root=${root}`, '--no-pager', name], {
        encoding: 'utf8',
      })
      const exposure = Number(/exposure level for \S+: ([\d.]+)/.exec(security.stdout)?.[1])
      t.ok(exposure < MAX_EXPOSURE, `exposure of ${name}: ${exposure}`)
      t.comment(`exposure of ${name}: ${exposure}`)
    }

    const scripts = new Set<string>()
    for (const name of readdirSync(join(root, UNITS)).filter((name) => name.startsWith('camera-') && name.endsWith('.service')))
      for (const [, path = ''] of readFileSync(join(root, UNITS, name), 'utf8').matchAll(/(\/usr\/lib\/camera\/[\w-]+)/g))
        scripts.add(path)
    for (const path of scripts) t.ok(existsSync(join(root, path)), path)
  })
}

t.test('no start hangs for ever: systemd puts no limit to a oneshot by itself', async (t) => {
  const folder = join(OVERLAY, 'common', UNITS)
  for (const name of readdirSync(folder).filter((name) => name.endsWith('.service'))) {
    const unit = readFileSync(join(folder, name), 'utf8')
    if (/^Type=oneshot$/m.test(unit)) t.match(unit, /^TimeoutStartSec=/m, name)
  }
})

t.test('only root speaks to RAUC: the server has its own narrow door', async (t) => {
  const policy = readFileSync(join(OVERLAY, 'common/usr/share/dbus-1/system.d/de.pengutronix.rauc.conf'), 'utf8')
  t.same(
    [...policy.matchAll(/<policy [^>]*>/g)].map(([tag]) => tag),
    ['<policy user="root">', '<policy user="camera-hawkbit">'],
  )
  const [, hawkbit = ''] = policy.split('<policy user="camera-hawkbit">')
  const rules = [...hawkbit.matchAll(/<allow (.*)\/>/g)].map(([, rule = '']) => rule)
  t.equal(rules.length, 3)
  for (const rule of rules)
    t.match(rule, /^send_destination="de\.pengutronix\.rauc" send_interface="\S+" send_member="(InstallBundle|Get|GetAll)"$/)
  const unit = readFileSync(join(OVERLAY, 'common', UNITS, 'camera-hawkbit.service'), 'utf8')
  t.match(unit, /^ConditionPathExists=\/run\/camera-proved$/m, 'nothing is written over the other slot during a trial')
  t.match(unit, /^After=.*\bcamera-boot-record\.service\b/m)
  for (const file of ['overlay/common/usr/lib/sysusers.d/camera.conf', 'board/common/users.txt'])
    t.match(readFileSync(join(OVERLAY, '..', file), 'utf8'), /camera-hawkbit.* 701/, file)
})

t.test('what would come up without a firewall does not come up', async (t) => {
  const unit = (name: string) => readFileSync(join(OVERLAY, 'common', UNITS, name), 'utf8')
  t.match(unit('systemd-networkd.service.d/camera.conf'), /^Requires=camera-firewall\.service\nAfter=camera-firewall\.service$/m)
  t.match(unit('camera-firewall.service'), /^FailureAction=reboot$/m)
})

t.test('the firewall lets in what is listed and nothing else', async (t) => {
  const rules = readFileSync(join(OVERLAY, 'common/etc/camera/nftables.conf'), 'utf8')
  t.match(rules, /hook input priority filter; policy drop;/)
  t.match(rules, /hook forward priority filter; policy drop;/)
  t.same(
    [...rules.matchAll(/^\s*(\w+ dport .*) accept$/gm)].map(([, rule]) => rule),
    ['tcp dport { 80, 443, 322, 554, 8080, 8081, 8082 }', 'udp dport { 3702, 5353 }', 'tcp dport @optional_tcp'],
  )
  const check = spawnSync('/usr/sbin/nft', ['-c', '-f', join(OVERLAY, 'common/etc/camera/nftables.conf')], { encoding: 'utf8' })
  t.equal(check.stderr, '')
})
