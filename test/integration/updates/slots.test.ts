/** Which release runs, which one failed, and the way back; restarts; hawkBit. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Json, login, until } from '../../support/api.ts'
import { DATA } from '../../support/fake-system.ts'
import { startQuickServer } from '../../support/server.ts'
import { INFO, PATH, slots, startAppliance } from './harness.ts'

const FAILURE = {
  slot: 'B',
  version: '1.3.0',
  installed: '2026-11-01T10:00:00Z',
  detected: '2026-11-01T10:09:00Z',
  attempts: 3,
  stage: 'server',
  reason: 'not healthy within 180 s',
  log: ['camera-server: something is wrong', 'camera-server exited'],
}
const TOKEN = 'hawkbit-Secret-1234'

t.test('data that was lost is told once, also after a restart of the server', async (t) => {
  const recreated = '2026-11-01T10:00:00Z'
  const { api, system, server } = await startAppliance(t, { info: [DATA({ ...INFO, data_recreated: recreated }), 'done'] })
  const alerts = async (as = api) => (await as.get('/api/audit?action=alert.data_recreated')).body
  t.match(await until(alerts, ({ total }) => Number(total) > 0, 'the alert'), { total: 1, entries: [{ data: { recreated } }] })
  t.match((await api.get(`${PATH}/status`)).body, { data_recreated: recreated })
  await server.stop()
  const asked = system.asked('failures').length
  const args = ['--system-socket', system.socket, '--rate-limits', 'off', '--camera', 'test:640x360@30']
  const other = await login(await startQuickServer(t, { dataDir: server.dataDir, args }))
  await until(
    () => system.asked('failures').length,
    (times) => times > asked,
    'what is told after it',
  )
  t.match(await alerts(other), { total: 1 })
})

t.test('slots, confirmation, failures', async (t) => {
  const failures = [DATA(FAILURE), 'done']
  const { api, system, server } = await startAppliance(t, { failures, slots: slots({ version: '1.3.0', primary: 'rootfs.1' }) })

  await t.test('a release is confirmed when the API answers and new pictures come', async (t) => {
    await until(
      () => system.asked('healthy').length,
      (times) => times > 0,
      'the confirmation',
      20_000,
    )
    const { body } = await until(
      () => api.get(`${PATH}/status`),
      ({ body }) => String(body.confirmed) === 'true',
      'the status',
    )
    t.match(body, {
      current: { version: '1.2.3', slot: 'A' },
      booted: 'A',
      primary: 'B',
      slots: [
        { name: 'A', state: 'booted', version: '1.2.3', tries_left: 3 },
        { name: 'B', state: 'inactive', version: '1.3.0', tries_left: 2 },
      ],
      pending: { slot: 'B', version: '1.3.0', state: 'waits_for_restart' },
      waiting_for: null,
      failures: [FAILURE],
      data_recreated: null,
    })
    t.equal(system.asked('healthy').length, 1, 'once is enough')
  })

  await t.test('a failed update is told once, also after a restart of the server', async (t) => {
    const alerts = async (as = api) => (await as.get('/api/audit?action=alert.update_failed')).body
    t.match(await alerts(), { total: 1, entries: [{ data: { slot: 'B', stage: 'server', version: '1.3.0' } }] })
    t.match(
      server.log.find((line) => line.includes('an update failed')),
      /something is wrong/,
    )
    t.same(system.asked('hawkbit'), ['hawkbit off'], 'what the store says is told at the start')
    system.answer('hawkbit', ['done'])
    const hawkbit = { enabled: true, server: 'fleet.example', target: 'camera-7', token: TOKEN }
    t.match(await api.put(`${PATH}/config`, { hawkbit }), { status: 200 })
    await server.stop()
    const args = ['--system-socket', system.socket, '--rate-limits', 'off', '--camera', 'test:640x360@30']
    const again = await startQuickServer(t, { dataDir: server.dataDir, args })
    const on = 'hawkbit on fleet.example DEFAULT camera-7 target'
    await until(
      () => system.asked('hawkbit').length,
      (times) => times === 3,
      'what the store says, at this start',
    )
    t.same(system.asked('hawkbit'), ['hawkbit off', on, on])
    const asked = system.asked('failures').length
    const other = await login(again)
    t.match((await other.get(`${PATH}/status`)).body.failures, [FAILURE])
    t.ok(system.asked('failures').length > asked)
    t.match(await alerts(other), { total: 1 })
    system.answer('dismiss-failures', ['done'])
    t.match(await other.delete(`${PATH}/failures`), { status: 200 })
    t.same(system.asked('dismiss-failures'), ['dismiss-failures'])
    const unavailable = (message: string, details: string) => {
      return { status: 503, body: { error: { code: 'SERVICE_UNAVAILABLE', message, details } } }
    }
    system.answer('dismiss-failures', ['failed IO the list cannot be written'])
    t.match(await other.delete(`${PATH}/failures`), unavailable('the list cannot be written', 'IO'))
    system.answer('failures', ['failed IO the list cannot be read'])
    t.match(await other.get(`${PATH}/status`), unavailable('the list cannot be read', 'IO'))
    system.answer('info', ['failed INFO nothing is known'])
    t.match(await other.get(`${PATH}/check`), unavailable('nothing is known', 'INFO'))
    system.answer('info', ['done'])
    t.match(await other.get(`${PATH}/check`), unavailable('The system service does not say what runs', 'info'))
  })
})

t.test('the way back, restarts, and the fleet', async (t) => {
  const { api, system, server, shelf } = await startAppliance(t, { slots: slots({ version: '' }), activate: ['done'] })
  const rollback = (body?: object) => api.post(`${PATH}/rollback`, body)

  await t.test('there is a way back only to a release that is there and fit', async (t) => {
    t.match(await rollback(), { status: 409, body: { error: { details: 'slots' } } })
    system.answer('slots', slots({ boot_status: 'bad' }))
    t.match(await rollback(), { status: 409, body: { error: { details: 'slot B' } } })
    system.answer('slots', slots())
    t.match(await rollback({ target_version: '1.0.0' }), { status: 409, body: { error: { details: 'body.target_version' } } })
    t.match(await rollback({ preserve_data: false }), {
      status: 422,
      body: { error: { code: 'UNSUPPORTED_SETTING', details: 'body.preserve_data' } },
    })
    system.answer('activate', ['failed NOT_BOOTABLE slot B is empty'])
    t.match(await rollback(), { status: 409, body: { error: { message: 'slot B is empty' } } })
    t.same(system.asked('reboot'), [])
  })

  await t.test('a restart cuts no recording off unless that is meant', async (t) => {
    const started = await api.post('/api/recording/start', { duration: 0 })
    t.equal(started.status, 200)
    t.match(await api.post('/api/system/reboot'), { status: 409, body: { error: { code: 'RECORDING_IN_PROGRESS' } } })
    t.same(system.asked('reboot'), [])
    t.equal((await api.post('/api/recording/stop')).status, 200)
  })

  await t.test('hawkBit: its token is written for the system service, and told to nobody', async (t) => {
    const file = join(shelf, 'hawkbit-token')
    const fleet = { enabled: true, server: 'fleet.example:8443', target: 'camera-7', tenant: 'DEFAULT', auth: 'target' }
    const put = (hawkbit: object) => api.put(`${PATH}/config`, { hawkbit })
    t.match(await put(fleet), { status: 400, body: { error: { details: 'body.hawkbit.token' } } })
    t.match(await put({ ...fleet, token: TOKEN, target: '' }), {
      status: 400,
      body: { error: { details: 'body.hawkbit.target' } },
    })
    t.match(await put({ ...fleet, token: 'two words' }), { status: 400 })
    t.match(await put({ ...fleet, token: TOKEN, server: 'a b' }), { status: 400 })
    system.answer('hawkbit', ['failed UNSUPPORTED rauc-hawkbit-updater is not part of this image'])
    t.match(await put({ ...fleet, token: TOKEN }), {
      status: 422,
      body: { error: { message: /not part of this image/, details: 'body.hawkbit.enabled' } },
    })
    t.equal(existsSync(file), false)
    t.match((await api.get(`${PATH}/config`)).body, { hawkbit: { enabled: false, token_set: false } })

    let read = ''
    system.answer('hawkbit', (_args, { say }) => {
      read = readFileSync(file, 'utf8')
      say('done')
    })
    const on = await put({ ...fleet, token: TOKEN })
    t.match(on, { status: 200, body: { hawkbit: { ...fleet, token_set: true } } })
    t.equal(read, `${TOKEN}\n`)
    t.equal(statSync(file).mode & 0o777, 0o600)
    t.equal(system.asked('hawkbit').at(-1), 'hawkbit on fleet.example:8443 DEFAULT camera-7 target')
    const asked = system.asked('hawkbit').length
    t.match(await put(fleet), { status: 200 }, 'the token stays')
    t.equal(system.asked('hawkbit').length, asked, 'nothing to do')

    let go = () => {}
    system.answer('hawkbit', async ([what], { say }) => {
      if (what === 'on') await new Promise<void>((resolve) => (go = resolve))
      say('done')
    })
    const first = put({ ...fleet, target: 'camera-8' })
    await until(
      () => system.asked('hawkbit').length,
      (times) => times > asked,
      'the first of two changes',
    )
    const second = put({})
    t.equal(await Promise.race([second, api.get(`${PATH}/config`).then(() => 'waits')]), 'waits', 'one after the other')
    go()
    t.match(await first, { status: 200, body: { hawkbit: { target: 'camera-8' } } })
    t.match(await second, { status: 200, body: { hawkbit: { enabled: false, token_set: true } } })
    t.equal(system.asked('hawkbit').at(-1), 'hawkbit off', 'the last one is what the system service has')
    t.match((await api.get(`${PATH}/config`)).body, { hawkbit: { enabled: false } }, 'and the store')
    const everything = [
      on.body,
      (await api.get(`${PATH}/config`)).body,
      (await api.get('/api/audit')).body,
      server.log,
      system.requests,
    ]
    t.notMatch(JSON.stringify(everything), TOKEN)
  })

  await t.test('an update that waits for its restart is called off: nothing restarts', async (t) => {
    system.answer('activate', ['done'])
    system.answer('slots', slots({ version: '1.3.0', primary: 'rootfs.1' }))
    const asked = system.asked('activate').length
    t.match(await rollback({ target_version: '1.3.0' }), { status: 409, body: { error: { details: 'body.target_version' } } })
    t.equal(system.asked('activate').length, asked)
    t.same((await rollback()).body, { success: true, slot: 'A', version: '1.2.3', restarting: false })
    t.same(system.asked('activate').slice(asked), ['activate A'])
    const { entries } = (await api.get('/api/audit?action=config.update_called_off')).body
    t.match(entries as unknown as Json[], [{ username: 'admin', data: { slot: 'B', version: '1.3.0' } }])
    t.equal((await rollback({ target_version: '1.2.3' })).status, 200)
    system.answer('activate', ['failed ACTIVATE RAUC is busy'])
    t.match(await rollback(), { status: 503, body: { error: { message: 'RAUC is busy', details: 'ACTIVATE' } } })
    system.answer('slots', slots())
  })

  await t.test('a rollback that was answered as failed does not come with some later start', async (t) => {
    system.answer('slots', slots())
    system.answer('activate', ([slot], { say, close }) => (slot === 'B' ? close() : say('done')))
    const asked = system.asked('activate').length
    t.match(await rollback(), { status: 500, body: { error: { code: 'INTERNAL_ERROR' } } })
    t.same(system.asked('activate').slice(asked), ['activate B', 'activate A'])
    t.same(system.asked('reboot'), [])
  })

  await t.test('back: the answer first, then the restart', async (t) => {
    system.answer('activate', ['done'])
    t.match(await rollback({ target_version: '1.1.0', preserve_data: true }), {
      status: 200,
      body: { success: true, slot: 'B', version: '1.1.0', restarting: true },
    })
    t.equal(system.asked('activate').at(-1), 'activate B')
    t.match(await api.post('/api/system/reboot'), { status: 409, body: { error: { details: 'restart' } } })
    await until(
      () => system.asked('reboot').length,
      (times) => times === 1,
      'the restart',
    )
    const { entries } = (await api.get('/api/audit?action=config.update_rolled_back')).body
    t.match(entries as unknown as Json[], [{ username: 'admin', data: { slot: 'B', version: '1.1.0' } }])
  })
})
