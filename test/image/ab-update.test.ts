/** An update by the API into the other slot and back again; and those that must be refused before anything is written. */
import t, { type Test } from 'tap'
import type { Api, Json } from '../support/api.ts'
import { type BundleName, bundleVersion, damaged, imageVersion } from './support/bundles.ts'
import { confirmed, loggedIn } from './support/device.ts'
import { figure, seconds } from './support/figures.ts'
import { fetched, recorded } from './support/recordings.ts'
import { FULL, machineFor } from './support/scenario.ts'
import { install, installed, sent, updateStatus } from './support/updates.ts'
import { BOOT_LIMIT_MS, type Machine } from './support/vm.ts'

const CONFIRM_LIMIT_MS = 120_000

t.test('into the other slot and back', { timeout: 1_800_000 }, async (t) => {
  const machine = await machineFor(t, 'update', 'prepared')
  await machine.start()
  const api = await loggedIn(machine)
  const kept = await recorded(api, 3)
  const identity = await machine.run('cat /etc/machine-id; hostname')

  await t.test('what is refused', (t) => refused(t, machine, api))
  if (FULL) await t.test('what goes bad on the way', (t) => broken(t, machine, api))

  let later = api
  await t.test('an update', async (t) => {
    later = await updated(t, machine, api)
    t.equal((await fetched(later, kept.id)).sha256, kept.sha256, 'the recordings are there')
    t.equal(await machine.run('cat /etc/machine-id; hostname'), identity, 'it is the same device')
    t.equal(await machine.run('systemctl --failed --plain --no-legend'), '')
    t.match(
      await machine.run('cat /proc/cmdline'),
      `systemd.machine_id=${await machine.run('cat /etc/machine-id')}`,
      'the boot loader knows the machine id',
    )
    t.ok(Number(await machine.run('journalctl --list-boots --no-pager | wc -l')) >= 2, 'the journal outlasts a start')
  })
  let again = api
  await t.test('back to the release before', async (t) => {
    again = await rolledBack(t, machine, later)
    t.equal((await fetched(again, kept.id)).sha256, kept.sha256, 'the recordings are there')
    t.equal(await machine.run('cat /etc/machine-id; hostname'), identity, 'it is the same device')
    t.equal(await machine.run('systemctl --failed --plain --no-legend'), '')
  })
  if (FULL) await t.test('to one that has been damaged since', (t) => comesBack(t, machine, again))
})

/** Nothing has been written: the other slot is as the image left it. */
async function refused(t: Test, machine: Machine, api: Api): Promise<void> {
  const cases: [BundleName, RegExp][] = [
    ['wrong-compatible', /camera-server-toaster|other device|compatible/i],
    ['foreign-signature', /signature|trust/i],
    ['older', /older|downgrade/i],
  ]
  for (const [name, why] of cases) {
    const { id } = await sent(machine, api, name)
    const offer = await offered(api, id)
    t.match(offer, { installable: false, reason: why, newer: false }, `${name}: not offered for installation`)
    const answer = await install(api, id, false)
    t.ok(answer.status === 409 || answer.status === 422, `${name}: ${answer.status} ${JSON.stringify(answer.body)}`)
    t.match(String(answer.body.error?.message), why)
  }
  const status = await updateStatus(api)
  t.match(status, { booted: 'A', primary: 'A', pending: null, confirmed: true })
  t.same(status.failures, [])
}

async function offered(api: Api, id: Json | undefined): Promise<Json | undefined> {
  const { body } = await api.get('/api/system/updates/check')
  return (body.updates as unknown as Json[]).find((offer) => String(offer.id) === String(id))
}

/** The signature is over the whole content: a byte that has changed is found when it is read, and the slot is never used. */
async function broken(t: Test, machine: Machine, api: Api): Promise<void> {
  const { id } = await sent(machine, api, 'good', await damaged('good'))
  const job = await installed(api, await install(api, id, false))
  t.match(job, { status: 'failed' }, JSON.stringify(job))
  const status = await updateStatus(api)
  t.match(status, { booted: 'A', primary: 'A' })
}

async function updated(t: Test, machine: Machine, api: Api): Promise<Api> {
  const began = performance.now()
  const { id } = await sent(machine, api, 'good')
  figure(t, 'upload of an update', seconds(performance.now() - began))
  t.match(await offered(api, id), {
    version: bundleVersion('good'),
    valid: true,
    installable: true,
    newer: true,
    source: 'upload',
  })

  const boots = machine.boots
  const before = machine.log.length
  const installing = performance.now()
  const progress: number[] = []
  const states = new Set<string>()
  const job = await installed(api, await install(api, id, true), progress, states)
  figure(t, 'installation of an update', seconds(performance.now() - installing))
  t.match(job, { status: 'succeeded' }, JSON.stringify(job))
  t.ok(states.has('installing'), `and the state of the slots could be asked for: ${[...states].join(', ')}`)
  t.ok(progress.length >= 3, `its progress could be followed: ${progress.join(', ')}`)
  t.same(
    progress,
    progress.toSorted((a, b) => a - b),
  )

  const restarting = performance.now()
  await machine.waitForBoot(boots + 1, BOOT_LIMIT_MS)
  const later = await loggedIn(machine)
  figure(t, 'restart into an update', seconds(performance.now() - restarting))
  await confirmed(machine, before, CONFIRM_LIMIT_MS)
  const status = await updateStatus(later)
  t.match(status, { booted: 'B', primary: 'B', pending: null, confirmed: true }, JSON.stringify(status))
  t.same(status.failures, [])
  t.equal(String(status.current?.version), bundleVersion('good'))
  t.equal(await machine.run('sed -n s/^VERSION=//p /etc/camera-release'), bundleVersion('good'))
  t.match(slot(status, 'B'), { state: 'booted', boot_status: 'good', version: bundleVersion('good') })
  return later
}

async function rolledBack(t: Test, machine: Machine, api: Api): Promise<Api> {
  const boots = machine.boots
  const before = machine.log.length
  const answer = await api.post('/api/system/updates/rollback', {})
  t.match(answer, { status: 200, body: { success: true, slot: 'A', restarting: true } }, JSON.stringify(answer.body))
  await machine.waitForBoot(boots + 1, BOOT_LIMIT_MS)
  const again = await loggedIn(machine)
  await confirmed(machine, before, CONFIRM_LIMIT_MS)
  const status = await updateStatus(again)
  t.match(status, { booted: 'A', primary: 'A', pending: null, confirmed: true }, JSON.stringify(status))
  t.same(status.failures, [])
  t.equal(String(status.current?.version), imageVersion())
  t.match(slot(status, 'B'), { state: 'inactive', version: bundleVersion('good') })
  return again
}

/** A release that is gone back to has a trial: the one that ran is there again by itself, and tells why. */
async function comesBack(t: Test, machine: Machine, api: Api): Promise<void> {
  // Its beginning, by which the service knows a system, stays.
  await machine.run('dd if=/dev/zero of=/dev/disk/by-partlabel/rootfs-b bs=1M seek=1 count=100 conv=fsync 2>&1')
  const boots = machine.boots
  const before = machine.log.length
  const answer = await api.post('/api/system/updates/rollback', {})
  t.match(answer, { status: 200, body: { slot: 'B', version: bundleVersion('good') } }, JSON.stringify(answer.body))
  await machine.waitForBoot(boots + 1, BOOT_LIMIT_MS)
  const again = await loggedIn(machine)
  await confirmed(machine, before, CONFIRM_LIMIT_MS)
  const status = await updateStatus(again)
  t.match(status, { booted: 'A', primary: 'A', pending: null, confirmed: true }, JSON.stringify(status))
  t.match(status.failures, [{ slot: 'B', version: bundleVersion('good'), installed: null, stage: 'loader' }])
  t.match(slot(status, 'B'), { boot_status: 'bad' })
}

function slot(status: Json, name: string): Json | undefined {
  return (status.slots as unknown as Json[]).find((slot) => String(slot.name) === name)
}
