/** The power goes while an update is installed: the old release runs or the new one, whole; and then an update goes through (in full, for the time it takes). */
import type { Test } from 'tap'
import type { Api, Json } from '../../support/api.ts'
import { bundleVersion, imageVersion } from '../support/bundles.ts'
import { loggedIn } from '../support/device.ts'
import { figure } from '../support/figures.ts'
import { cutWithin, powerCuts, ROUNDS, sound } from '../support/power-cut.ts'
import { FULL, machineFor } from '../support/scenario.ts'
import { install, installed, sent, updateStatus } from '../support/updates.ts'
import type { Machine } from '../support/vm.ts'

/** How long it takes without KVM and with another machine beside it. */
const INSTALL_MS = 60_000

powerCuts('update install', async (t: Test) => {
  let machine: Machine | undefined
  const seen: string[] = []
  const offered = async (machine: Machine, api: Api) => {
    const offers = (await api.get('/api/system/updates/check')).body.updates as unknown as Json[]
    return offers.find(({ source }) => String(source) === 'upload')?.id ?? (await sent(machine, api, 'good')).id
  }
  for (let round = 1; round <= ROUNDS; round++) {
    if (!machine) {
      machine = await machineFor(t, `cut-update-${round}`, 'prepared')
      await machine.start()
    }
    let api = await loggedIn(machine)
    t.equal((await install(api, await offered(machine, api), false)).status, 200)
    await cutWithin(t, machine, INSTALL_MS, `round ${round}`)
    const before = machine.log.length
    await machine.start()
    api = await loggedIn(machine)
    await sound(t, machine, before)
    const status = await updateStatus(api)
    const version = String(status.current?.version)
    seen.push(version)
    const good = { [imageVersion()]: 'A', [bundleVersion('good')]: 'B' }
    t.equal(String(status.booted), good[version], `round ${round}: ${version} runs`)
    t.same(status.failures, [], 'an interrupted installation is no failed release')
    if (version !== imageVersion()) {
      await machine.cut()
      machine = undefined
    }
  }
  if (machine && FULL) {
    const api = await loggedIn(machine)
    t.match(await installed(api, await install(api, await offered(machine, api), false)), { status: 'succeeded' })
  }
  figure(t, 'started after a cut while installing', seen.join(', '))
})
