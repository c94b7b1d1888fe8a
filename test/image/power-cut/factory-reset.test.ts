/** The power goes while the device is reset: the reset is carried out to its end by the next start. */
import type { Test } from 'tap'
import { firstLogin, firstPicture, loggedIn } from '../support/device.ts'
import { cutWithin, powerCuts, ROUNDS, sound } from '../support/power-cut.ts'
import { catalogue, recorded } from '../support/recordings.ts'
import { machineFor, prepared } from '../support/scenario.ts'
import { BOOT_LIMIT_MS } from '../support/vm.ts'

/** How long the work itself takes, and half as much again. */
const RESET_MS = 6000

powerCuts('factory reset', async (t: Test) => {
  const { confirmedMs } = await prepared()
  const machine = await machineFor(t, 'cut-reset', 'prepared')
  await machine.start()
  let api = await loggedIn(machine)
  for (let round = 1; round <= ROUNDS; round++) {
    await firstPicture(machine, api)
    await recorded(api, 3)
    const boots = machine.boots
    t.equal((await api.post('/api/system/factory-reset', { confirm: true })).status, 200)
    const asked = machine.log.length
    await machine.waitForBoot(boots + 1, BOOT_LIMIT_MS)
    // Every other one in the work itself, which is a small part of the start.
    if (round % 2 === 1) {
      await machine.waitForLog(/camera: factory reset\s*$/m, BOOT_LIMIT_MS, asked)
      await cutWithin(t, machine, RESET_MS, `round ${round}, in the work`)
    } else {
      await cutWithin(t, machine, confirmedMs, `round ${round}, in the start`)
    }
    const before = machine.log.length
    await machine.start()
    api = await firstLogin(machine)
    await sound(t, machine, before)
    t.same(await catalogue(api), [], 'the recordings are gone')
    t.equal((await machine.tryRun('test -e /data/system/factory-reset')).status, 1, 'the reset is over')
  }
})
