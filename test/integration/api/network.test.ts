/** The network over the whole server: what it says of the machine that it runs on, the words that reach the system service, and who hears of it. */
import t from 'tap'
import { WebSocket } from 'ws'
import { type Api, type Json, login, until } from '../../support/api.ts'
import { startFakeSystem } from '../../support/fake-system.ts'
import { startQuickServer, type TestServer } from '../../support/server.ts'

const PASSWORD = 'Battery-Staple-7'

/** The types of the `config` events that reach a client. */
async function listen(server: TestServer, api: Api, into: string[]): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${server.ports.http}/api/v1?token=${api.token}`)
  socket.on('message', (data) => {
    const { event } = JSON.parse(String(data)) as Json
    if (event) into.push(String(event.type))
  })
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  socket.send(JSON.stringify({ subscribe: ['config'] }))
  return socket
}

t.test(
  'reset and restart reach the system service, the audit log, and admins alone, as does where updates come from',
  async (t) => {
    const system = await startFakeSystem(t, {
      'network-trials': ['done'],
      'network-restart': ['done'],
      'network-reset': ['done'],
    })
    const server = await startQuickServer(t, { args: ['--rate-limits', 'off', '--system-socket', system.socket] })
    const admin = await login(server)
    await admin.post('/api/users', { username: 'operator', password: PASSWORD, role: 'operator' })
    const operator = await login(server, 'operator', PASSWORD)
    const [heard, overheard]: [string[], string[]] = [[], []]
    const sockets = [await listen(server, admin, heard), await listen(server, operator, overheard)]
    t.teardown(() => sockets.map((socket) => socket.terminate()))

    t.match(await operator.post('/api/network/restart'), { status: 403 })
    t.match(await admin.post('/api/network/restart'), { status: 200, body: { success: true } })
    await until(
      () => system.asked('network-restart'),
      ({ length }) => length === 1,
      'the restart',
    )
    await until(
      () => admin.post('/api/network/reset', { confirm: true }),
      ({ status }) => status === 200,
      'the reset, when the restart is over',
    )
    await until(
      () => system.asked('network-reset'),
      ({ length }) => length === 1,
      'the reset',
    )
    // An address may hold a secret.
    t.equal((await admin.put('/api/system/updates/config', { index_url: 'https://updates.test/index.json?key=1' })).status, 200)
    await admin.patch('/api/config/storage', { storage: { retention_days: 7 } })
    await until(
      () => overheard,
      ({ length }) => length > 0,
      'what operators may hear',
    )
    t.same(
      overheard.filter((type) => /^(network_|updates_)/.test(type)),
      [],
    )
    await until(
      () => heard,
      (types) => ['network_restart', 'network_reset', 'updates_config_changed'].every((type) => types.includes(type)),
      'what admins hear',
    )
    const { body } = await admin.get('/api/audit?action=config')
    const actions = (body.entries as unknown as { action: string; username: string }[]).map(
      (entry) => `${entry.username} ${entry.action}`,
    )
    t.ok(actions.includes('admin config.network_restart'))
    t.ok(actions.includes('admin config.network_reset'))
  },
)

t.test('without a system service: what this machine is can be read, and nothing can be changed', async (t) => {
  const server = await startQuickServer(t, { args: ['--rate-limits', 'off', '--system-socket', '/nonexistent/system.sock'] })
  const admin = await login(server)
  const { body } = await admin.get('/api/network/interfaces?loopback=true')
  const names = (body.interfaces as unknown as { name: string; type: string }[]).map(({ name, type }) => `${name} ${type}`)
  t.ok(names.includes('lo loopback'), names.join(', '))
  const { http, https, dashboard, rtsp, rtsps } = server.ports
  t.match(await admin.get('/api/network/config'), {
    status: 200,
    body: { ports: { http: [http], https: [https], dashboard: [dashboard], rtsp: [rtsp], rtsps: [rtsps] } },
  })
  t.match(await admin.get('/api/network/test?host=no%20name'), { status: 400 })
  t.match(await admin.put('/api/network/interfaces/lo', { method: 'dhcp' }), { status: 422 })
  t.match(await admin.put('/api/network/interfaces/nowhere0', { method: 'dhcp' }), { status: 404 })
  t.match(await admin.post('/api/network/reset', { confirm: true }), {
    status: 422,
    body: { error: { code: 'UNSUPPORTED_SETTING', details: 'network' } },
  })
})
