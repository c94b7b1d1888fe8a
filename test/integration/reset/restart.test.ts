/** A device that does not restart though it should. */
import t from 'tap'
import { Bus, type ServerEvent } from '../../../app/server/bus.ts'
import { SystemAgent } from '../../../app/server/platform/index.ts'
import { Restart } from '../../../app/server/reset/index.ts'
import { until } from '../../support/api.ts'
import { startFakeSystem } from '../../support/fake-system.ts'
import { log } from '../auth/harness.ts'

t.test('it is told, tried again a few times, and given up', async (t) => {
  const system = await startFakeSystem(t, { reboot: ['failed SYSTEM the system does not reboot'] })
  const bus = new Bus()
  const alerts: ServerEvent[] = []
  bus.on('event', (event) => void alerts.push(event))
  const restart = new Restart(new SystemAgent(system.socket), bus, log, { delayMs: 1, retryAfterMs: [20, 10] })
  t.teardown(() => restart.stop())
  const told = (count: number) =>
    until(
      () => alerts.length,
      (length) => length === count,
      `alert ${count}`,
    )
  const about = { why: 'factory reset', error: 'the system does not reboot' }
  restart.soon('factory reset')
  await told(1)
  t.throws(() => restart.check(), { code: 'CONFLICT', details: 'restart' }, 'it comes still')
  await told(3)
  t.match(alerts, [
    { category: 'alert', type: 'restart_failed', data: { ...about, retry_in_seconds: 0.02 } },
    { type: 'restart_failed', data: { ...about, retry_in_seconds: 0.01 } },
    { type: 'restart_failed', data: { ...about, retry_in_seconds: null } },
  ])
  restart.check()
  t.equal(system.asked('reboot').length, 3, 'bounded')

  system.answer('reboot', (_args, { say }) => say(system.asked('reboot').length === 4 ? 'failed SYSTEM no' : 'done'))
  restart.soon('asked for')
  await until(
    () => system.asked('reboot').length,
    (times) => times === 5,
    'the second attempt',
  )
  t.equal(alerts.length, 4)
})

t.test('the end of the server ends the attempts', async (t) => {
  const system = await startFakeSystem(t, { reboot: ['failed SYSTEM no'] })
  const bus = new Bus()
  const restart = new Restart(new SystemAgent(system.socket), bus, log, { delayMs: 1, retryAfterMs: [60_000] })
  const told = new Promise((resolve) => bus.once('event', resolve))
  restart.soon('update')
  await told
  restart.stop()
  t.equal(system.asked('reboot').length, 1)
})
