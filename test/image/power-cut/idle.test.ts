/** The power goes while nothing is asked of the device. */
import type { Test } from 'tap'
import { loggedIn } from '../support/device.ts'
import { cutWithin, powerCuts, ROUNDS, sound, unharmed } from '../support/power-cut.ts'
import { recorded } from '../support/recordings.ts'
import { machineFor } from '../support/scenario.ts'

const IDLE_MS = 15_000

powerCuts('idle', async (t: Test) => {
  const machine = await machineFor(t, 'cut-idle', 'prepared')
  await machine.start()
  let api = await loggedIn(machine)
  const kept = [await recorded(api, 3)]
  for (let round = 1; round <= ROUNDS; round++) {
    await cutWithin(t, machine, IDLE_MS, `round ${round}`)
    const before = machine.log.length
    await machine.start()
    api = await loggedIn(machine)
    await sound(t, machine, before)
    await unharmed(t, api, kept)
  }
})
