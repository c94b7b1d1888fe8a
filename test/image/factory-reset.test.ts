/** Back to the state of delivery: what stays is what was asked for, and what makes the device the one that it is. */
import t, { type Test } from 'tap'
import type { Api } from '../support/api.ts'
import { confirmed, firstLogin, loggedIn } from './support/device.ts'
import { figure, seconds } from './support/figures.ts'
import { recorded } from './support/recordings.ts'
import { FULL, machineFor } from './support/scenario.ts'
import { leave, left } from './support/state.ts'
import { BOOT_LIMIT_MS, type Machine } from './support/vm.ts'

const IDENTITY = 'cat /etc/machine-id /data/system/serial; hostname; sed -n s/^VERSION=//p /etc/camera-release'

t.test('a factory reset', { timeout: 1_800_000 }, async (t) => {
  const machine = await machineFor(t, 'factory-reset', 'prepared')
  await machine.start()
  let api = await loggedIn(machine)
  await leave(machine, api)
  await recorded(api, 3)
  t.same(await left(machine, api), { operator: true, category: true, recordings: 1, method: 'static' }, 'what is there before')
  const identity = await machine.run(IDENTITY)

  /** Restarts by `ask`, and comes back when the slot is confirmed again. */
  const restarted = async (t: Test, ask: () => Promise<unknown>, login: (machine: Machine) => Promise<Api>): Promise<Api> => {
    const boots = machine.boots
    const before = machine.log.length
    const began = performance.now()
    await ask()
    await machine.waitForBoot(boots + 1, BOOT_LIMIT_MS)
    const again = await login(machine)
    figure(t, 'factory reset, from the request to the login', seconds(performance.now() - began))
    t.match(machine.log.slice(before), 'camera: factory reset: done')
    await confirmed(machine, before)
    t.equal(await machine.run(IDENTITY), identity, 'it is the same device, with the same release')
    t.equal(await machine.run('systemctl --failed --plain --no-legend'), '')
    t.equal(await machine.run('ls -A /data | tr "\\n" " "'), 'camera lost+found system ', 'nothing is left of the work')
    return again
  }
  const reset = async (t: Test, body: object) => {
    const answer = await api.post('/api/system/factory-reset', { confirm: true, ...body })
    t.match(answer, { status: 200, body: { success: true, restarting: true } }, JSON.stringify(answer.body))
  }

  await t.test('not without being sure', async (t) => {
    t.equal((await api.post('/api/system/factory-reset', { confirm: false })).status, 400)
    t.equal((await machine.tryRun('test -e /data/system/factory-reset')).status, 1)
  })
  await t.test('that keeps the users', async (t) => {
    api = await restarted(t, () => reset(t, { preserve_users: true }), loggedIn)
    t.same(await left(machine, api), { operator: true, category: true, recordings: 0, method: 'dhcp' })
    t.equal(
      (await machine.tryRun('test -e /data/camera/persistent/users-carry-over.json')).status,
      1,
      'the copy of the accounts is gone',
    )
  })
  if (!FULL) return
  await t.test('that keeps nothing', async (t) => {
    await recorded(api, 3)
    api = await restarted(t, () => reset(t, {}), firstLogin)
    t.same(await left(machine, api), { operator: false, category: true, recordings: 0, method: 'dhcp' })
    await leave(machine, api)
  })
  await t.test('that keeps users and network', async (t) => {
    await recorded(api, 3)
    api = await restarted(t, () => reset(t, { preserve_users: true, preserve_network: true }), loggedIn)
    t.same(await left(machine, api), { operator: true, category: true, recordings: 0, method: 'static' })
  })
  await t.test('asked for by the boot argument', async (t) => {
    await recorded(api, 3)
    api = await restarted(
      t,
      () => machine.run('/usr/lib/camera/bootenv set factory_reset=1 && systemctl reboot --no-block'),
      firstLogin,
    )
    t.match(await machine.run('cat /proc/cmdline'), 'camera.factory_reset=1')
    t.same(await left(machine, api), { operator: false, category: true, recordings: 0, method: 'dhcp' })
    t.equal(await machine.run('/usr/lib/camera/bootenv get factory_reset'), '', 'once')
  })
})
