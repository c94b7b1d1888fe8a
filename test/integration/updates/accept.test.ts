/** Until its release is confirmed, a database that has just begun is only on trial with it. */
import t from 'tap'
import { until } from '../../support/api.ts'
import type { FakeSystem } from '../../support/fake-system.ts'
import { startQuickServer, type TestServer } from '../../support/server.ts'
import { slots, startAppliance } from './harness.ts'

const accepted = ({ log }: TestServer) => log.some((line) => line.includes('the database is accepted'))

const twoAttempts = (system: FakeSystem) =>
  until(
    () => system.asked('healthy').length,
    (times) => times > 1,
    'two attempts',
    30_000,
  )

const onTrial = [...slots().slice(0, -1), 'data pending slot=A version=1.2.3 installed= state=installed', 'done']

t.test('a release on trial: when the system has taken its confirmation, not before', async (t) => {
  const { system, server } = await startAppliance(t, { slots: onTrial, healthy: ['failed CONFIRM not yet'] })
  await twoAttempts(system)
  t.notOk(accepted(server))
  system.answer('healthy', ['done'])
  await until(
    () => accepted(server),
    (is) => is,
    'the confirmation',
    30_000,
  )
})

t.test('a release that was confirmed before: as soon as its API answers', async (t) => {
  const { system, server } = await startAppliance(t, { healthy: ['failed CONFIRM no'] })
  await until(
    () => accepted(server),
    (is) => is,
    'the API',
    30_000,
  )
  t.ok(system.asked('slots').length > 0)
})

t.test('a release that another one takes over from at the next start: not any more', async (t) => {
  const { system, server } = await startAppliance(t, { slots: slots({ primary: 'rootfs.1' }), healthy: ['failed CONFIRM no'] })
  await twoAttempts(system)
  t.notOk(accepted(server))
})

t.test('where the system does not say which slot runs, it counts as on trial', async (t) => {
  const { system, server } = await startAppliance(t, { slots: ['failed RAUC no answer'], healthy: ['failed CONFIRM no'] })
  await twoAttempts(system)
  t.notOk(accepted(server))
})

t.test('elsewhere than on the appliance: at the start', async (t) => {
  const server = await startQuickServer(t)
  await until(
    () => accepted(server),
    (is) => is,
    'the log',
  )
})
