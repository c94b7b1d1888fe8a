/** The power goes while the device starts for the first time. */
import type { Test } from 'tap'
import { firstLogin, firstPicture } from '../support/device.ts'
import { cutWithin, powerCuts, ROUNDS, sound } from '../support/power-cut.ts'
import { recorded } from '../support/recordings.ts'
import { machineFor, prepared } from '../support/scenario.ts'

powerCuts('first start', async (t: Test) => {
  const { confirmedMs } = await prepared()
  for (let round = 1; round <= ROUNDS; round++) {
    const machine = await machineFor(t, `cut-first-${round}`, 'new')
    await machine.start()
    await cutWithin(t, machine, confirmedMs, `round ${round}`)
    await machine.start()
    const api = await firstLogin(machine)
    await firstPicture(machine, api)
    await sound(t, machine, 0)
    t.match(await machine.run('cat /etc/machine-id'), /^[0-9a-f]{32}$/)
    t.ok(Number(await machine.run('df --output=size -B1000000 /data | tail -n 1')) > 3000, 'the data partition has grown')
    await recorded(api, 3)
    await machine.cut()
  }
})
