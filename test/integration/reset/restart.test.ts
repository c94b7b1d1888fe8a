/** A device that does not restart though it should. */
import t from 'tap'
import type { Auth } from '../../../app/server/auth/index.ts'
import { Bus, type ServerEvent } from '../../../app/server/bus.ts'
import { AgentBroken, SystemAgent } from '../../../app/server/platform/index.ts'
import { FactoryReset, Restart } from '../../../app/server/reset/index.ts'
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

t.test('a factory reset whose restart is given up is withdrawn', async (t) => {
  const system = await startFakeSystem(t, {
    'factory-reset': ([what], { say }) => {
      if (what === 'off') say('data -')
      say('done')
    },
    reboot: ['failed SYSTEM no'],
  })
  const bus = new Bus()
  const alerts: ServerEvent[] = []
  bus.on('event', (event) => void (event.category === 'alert' && alerts.push(event)))
  const agent = new SystemAgent(system.socket)
  const restart = new Restart(agent, bus, log, { delayMs: 1, retryAfterMs: [1] })
  const auth = { carryOver: { remove: () => {} } } as Auth
  const reset = new FactoryReset({ agent, auth, restart, requireSettled: async () => {}, bus, log })
  t.teardown(() => reset.stop())
  await reset.request({ preserveNetwork: false, preserveUsers: false })
  await until(
    () => alerts.length,
    (length) => length === 3,
    'the alerts',
  )
  t.match(alerts[2], { type: 'factory_reset_withdrawn', data: { why: 'The device does not restart' } })
  t.same(system.requests, ['factory-reset -', 'reboot', 'reboot', 'factory-reset off'])
  restart.check()
})

t.test('a reset has a minute to be written down', async (t) => {
  const limits: (number | undefined)[] = []
  const ask: SystemAgent['ask'] = async (_words, options) => {
    limits.push(options?.timeoutMs)
    throw new AgentBroken('factory-reset', 'not within a minute')
  }
  const agent = { require: () => {}, ask } as unknown as SystemAgent
  const restart = new Restart(agent, new Bus(), log)
  const auth = { carryOver: { remove: () => {} } } as Auth
  const reset = new FactoryReset({ agent, auth, restart, requireSettled: async () => {}, bus: new Bus(), log })
  await t.rejects(reset.request({ preserveNetwork: false, preserveUsers: false }), AgentBroken)
  t.same(limits, [60_000, 60_000], 'and to be withdrawn')
  t.throws(() => restart.check(), { code: 'CONFLICT', details: 'busy' })
  reset.stop()
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
