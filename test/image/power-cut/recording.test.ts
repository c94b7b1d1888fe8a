/** The power goes in a recording: what was there is as it was, and of the one under way at most the last second is lost. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { until } from '../../support/api.ts'
import { firstPicture, loggedIn } from '../support/device.ts'
import { figure } from '../support/figures.ts'
import { moment, powerCuts, ROUNDS, sound, unharmed } from '../support/power-cut.ts'
import { type Fetched, fetched, over, recorded, startRecording } from '../support/recordings.ts'
import { machineFor, smallPictures } from '../support/scenario.ts'

const RECORDING_MS = 8000

powerCuts('recording', async (t: Test) => {
  const machine = await machineFor(t, 'cut-recording', 'prepared')
  await machine.start()
  let api = await loggedIn(machine)
  // What is lost can be told to a fifteenth of a second.
  await smallPictures(api, 15)
  await until(
    () => api.get('/api/camera/info'),
    ({ body }) => String(body.connected) === 'true' && Number(body.stats?.fps) === 15,
    'pictures at that rate',
    60_000,
  )
  const kept: Fetched[] = []
  const lost: number[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    kept.push(await recorded(api, 3))
    const id = await startRecording(api)
    await until(
      () => api.get('/api/recording/status'),
      ({ body }) => Number(body.position_ms) > 500,
      'the recording runs',
      30_000,
    )
    await delay(moment(RECORDING_MS))
    const position = Number((await api.get('/api/recording/status')).body.position_ms)
    await machine.cut()
    const before = machine.log.length
    await machine.start()
    api = await loggedIn(machine)
    await sound(t, machine, before)
    const entry = await over(api, id)
    // What was lost in its first second is lost whole.
    const ready = String(entry.state) === 'ready'
    if (!ready) t.equal(String(entry.state), 'defect')
    const plays = ready ? (await fetched(api, id)).found.seconds * 1000 : 0
    lost.push(Math.max(0, position - plays))
    t.ok(
      position - plays <= 1000,
      `round ${round}: ${position} ms had been recorded, ${plays.toFixed(0)} ms play, ${JSON.stringify(entry)}`,
    )
    await unharmed(t, api, kept)
    await firstPicture(machine, api)
  }
  figure(t, 'lost of a recording at a power cut, at most', `${Math.max(...lost).toFixed(0)} ms of ${lost.length} recordings`)
})
