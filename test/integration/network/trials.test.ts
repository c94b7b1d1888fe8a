/** Changes of the network over HTTP, against a scripted system service and a machine below a folder. */
import { request as httpRequest } from 'node:http'
import { type Static, Type } from '@sinclair/typebox'
import pino from 'pino'
import t, { type Test } from 'tap'
import { networkRoutes } from '../../../app/server/api/network.ts'
import { Bus, type ServerEvent } from '../../../app/server/bus.ts'
import { NetworkSelfTest, NetworkTrials } from '../../../app/server/network/index.ts'
import { SystemAgent } from '../../../app/server/platform/index.ts'
import { until } from '../../support/api.ts'
import { FakeNetwork } from '../../support/fake-network.ts'
import { DATA, type FakeSystem, startFakeSystem } from '../../support/fake-system.ts'
import { serve } from '../http/harness.ts'

const ETH0 = '/api/network/interfaces/eth0'
const STATIC = {
  method: 'static',
  ip_address: '192.168.1.20',
  netmask: '255.255.255.0',
  gateway: '192.168.1.1',
  dns_servers: ['9.9.9.9'],
}

type Method = 'GET' | 'PUT' | 'POST' | 'DELETE'
type Body = Record<string, unknown>

interface Rig {
  readonly net: FakeNetwork
  readonly system: FakeSystem
  readonly events: ServerEvent[]
  /** The test's own end of every connection is 127.0.0.1; to which of our addresses it goes is what the kernel's table says. */
  readonly port: number
  call(method: Method, path: string, body?: unknown): Promise<{ status: number; body: Body }>
  told(type: string): Promise<ServerEvent>
}

async function rig(t: Test, { appliance = true, expires = 60_000 } = {}): Promise<Rig> {
  const net = new FakeNetwork(t)
  net.link('lo', 1, { type: '772' })
  net.link('eth0', 2)
  net.link('eth1', 3)
  net.hold('lo', '127.0.0.1/8')
  net.hold('eth0', '192.168.1.7/24')
  net.hold('eth1', '10.20.0.5/16')
  net.networkd(2, '[Network]\nDHCP=yes\n', '', 'ADDRESS=192.168.1.7\n')
  const system = await startFakeSystem(t)
  const trials = new Map<string, string>()
  system.answer('network-set', ([name = ''], { say }) => {
    trials.set(name, new Date(Date.now() + expires).toISOString())
    say('done')
  })
  for (const verb of ['network-keep', 'network-revert'])
    system.answer(verb, ([name = ''], { say }) => say(trials.delete(name) ? 'done' : 'failed NO_TRIAL nothing is on trial'))
  system.answer('network-trials', (_, { say }) => {
    for (const [name, at] of trials) if (Date.parse(at) > Date.now()) say(DATA({ interface: name, expires: at }))
    say('done')
  })
  system.answer('network-reset', (_, { say }) => {
    trials.clear()
    say('done')
  })
  system.answer('network-restart', ['done'])

  const bus = new Bus()
  const events: ServerEvent[] = []
  bus.on('event', (event) => events.push(event))
  const log = pino({ level: 'silent' })
  const agent = new SystemAgent(appliance ? system.socket : '/nonexistent/system.sock')
  const ports: () => number[] = () => http.server.ports('http')
  const networkTrials = new NetworkTrials(agent, net.reader, bus, log, { ports, answerMs: 20, overdueCheckMs: 20 })
  const networkTest = new NetworkSelfTest(net.reader)
  const networkPorts = () => ({ http: ports(), https: [], dashboard: [], rtsp: [554], rtsps: [322] })
  const routes = networkRoutes({ network: net.reader, networkTrials, networkTest, networkPorts })
  const http = await serve(t, { routes })
  networkTrials.start()
  t.teardown(() => networkTrials.stop())
  const port = http.ports.http ?? 0
  return {
    net,
    system,
    events,
    port,
    call: async (method, path, body) => {
      const content = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
      const answer = await http.client.json(path, { method, ...content })
      return { status: answer.status, body: answer.body as Body }
    },
    told: (type) =>
      until(
        () => events.find((event) => event.type === type),
        (event) => event !== undefined,
        `the event ${type}`,
      ) as Promise<ServerEvent>,
  }
}

/** Until the change is in force, as a client sees it. */
async function onTrial({ call }: Rig): Promise<string> {
  const answer = await until(
    () => call('GET', '/api/network/config'),
    ({ body }) => trialIn(body) !== null,
    'the trial',
  )
  return trialIn(answer.body) ?? ''
}

/** The new address is on trial, and the client comes in by it. */
async function reachable(here: Rig): Promise<void> {
  await here.call('PUT', ETH0, STATIC)
  await onTrial(here)
  here.net.hold('eth0', '192.168.1.20/24')
  here.net.connections(['192.168.1.20', here.port, '127.0.0.1'])
}

const Config = Type.Object({
  interfaces: Type.Object({ eth0: Type.Object({ trial: Type.Union([Type.Object({ expires: Type.String() }), Type.Null()]) }) }),
})

function trialIn(body: unknown): string | null {
  return (body as Static<typeof Config>).interfaces.eth0.trial?.expires ?? null
}

t.test('trial, confirmation over the new address, kept', async (t) => {
  const here = await rig(t)
  const { call, net, system, port } = here
  net.connections(['192.168.1.7', port, '127.0.0.1'])
  const put = await call('PUT', ETH0, STATIC)
  t.match(put, {
    status: 200,
    body: {
      success: true,
      method: 'static',
      reconnect_to: '192.168.1.20',
      confirm_within_seconds: 60,
      confirm: `${ETH0}/confirm`,
    },
  })
  t.same(system.asked('network-set'), [], 'the answer comes first')
  const expires = Date.parse(await onTrial(here))
  t.ok(Math.abs(expires - Date.now() - 60_000) < 5000)
  t.same(system.asked('network-set'), ['network-set eth0 static 192.168.1.20/24 192.168.1.1 9.9.9.9'])

  t.match(await call('POST', `${ETH0}/confirm`), { status: 409, body: { error: { message: /does not have the address/ } } })
  net.hold('eth0', '192.168.1.20/24')
  t.match(await call('POST', `${ETH0}/confirm`), {
    status: 409,
    body: { error: { message: /over the new address/, details: '192.168.1.7' } },
  })
  t.equal(await withHost(port, '192.168.1.20'), 409, 'what the Host header says is no proof')
  t.same(system.asked('network-keep'), [])

  net.connections(['192.168.1.20', port, '127.0.0.1'])
  t.match(await call('POST', `${ETH0}/confirm`, { confirm: true }), { status: 200, body: { success: true } })
  t.same(system.asked('network-keep'), ['network-keep eth0'])
  t.match(await call('POST', `${ETH0}/confirm`), { status: 409 }, 'nothing is left to confirm')
  t.match(await call('DELETE', `${ETH0}/trial`), { status: 409 })
  t.same(
    here.events.map(({ category, type, actor }) => [category, type, actor?.username]),
    [
      ['config', 'network_changed', 'admin'],
      ['config', 'network_confirmed', 'admin'],
    ],
  )
  t.match(here.events[0]?.data, {
    interface: 'eth0',
    method: 'static',
    ip_address: '192.168.1.20',
    prefix: 24,
    confirm_within_seconds: 60,
  })
})

t.test('trial, no confirmation: the device takes it back, and says so', async (t) => {
  const here = await rig(t, { expires: 200 })
  t.match(await here.call('PUT', ETH0, STATIC), { status: 200 })
  const reverted = await here.told('network_reverted')
  t.match(reverted, { category: 'config', data: { interface: 'eth0', reason: 'timeout' } })
  t.equal(reverted.actor, undefined, 'nobody did')
  t.equal(trialIn((await here.call('GET', '/api/network/config')).body), null)
  t.same(here.system.asked('network-revert'), [], 'the system service does that by itself')
  t.match(await here.call('PUT', ETH0, STATIC), { status: 200 }, 'another try')
})

t.test('a system service that forgets to take it back is told to', async (t) => {
  const here = await rig(t, { expires: 100 })
  here.system.answer('network-trials', [DATA({ interface: 'eth0', expires: new Date().toISOString() }), 'done'])
  await here.call('PUT', ETH0, STATIC)
  t.match(await here.told('network_reverted'), { data: { reason: 'timeout' } })
  t.same(here.system.asked('network-revert'), ['network-revert eth0'])
})

t.test('to DHCP: any address will do but the one that was given up', async (t) => {
  const here = await rig(t)
  const { call, net, port } = here
  net.hold('eth0', '192.168.1.20/24')
  net.networkd(2, '[Network]\nAddress=192.168.1.20/24\n')
  t.match(await call('PUT', ETH0, { method: 'dhcp' }), { status: 200, body: { method: 'dhcp', reconnect_to: null } })
  await onTrial(here)
  net.connections(['192.168.1.20', port, '127.0.0.1'])
  t.match(await call('POST', `${ETH0}/confirm`), { status: 409 }, 'not taken away yet')
  net.networkd(2, '[Network]\nDHCP=yes\n', '', 'ADDRESS=192.168.1.30\n')
  net.hold('eth0', '192.168.1.30/24')
  t.match(await call('POST', `${ETH0}/confirm`), { status: 409 })
  net.connections(['192.168.1.30', port, '127.0.0.1'])
  t.match(await call('POST', `${ETH0}/confirm`), { status: 200 })
  t.same(here.system.asked('network-set'), ['network-set eth0 dhcp'])
})

t.test('taken back by the client: after it acts, and before', async (t) => {
  const here = await rig(t)
  await here.call('PUT', ETH0, STATIC)
  t.match(await here.call('PUT', ETH0, STATIC), { status: 409 }, 'one at a time')
  await onTrial(here)
  t.match(await here.call('DELETE', `${ETH0}/trial`), { status: 200 })
  t.match(here.events.at(-1), { type: 'network_reverted', data: { reason: 'asked' } })
  t.equal(here.events.at(-1)?.actor?.username, 'admin')
  await here.call('PUT', ETH0, STATIC)
  await onTrial(here)
  t.match(await here.call('POST', `${ETH0}/confirm`, { confirm: false }), { status: 200 })
  t.same(here.system.asked('network-revert'), ['network-revert eth0', 'network-revert eth0'])
})

t.test('a system service that cannot keep it: still on trial', async (t) => {
  const here = await rig(t)
  const { call, system } = here
  await reachable(here)
  const keeps = 'network-keep'
  system.answer(keeps, ['failed IO the disc is full'])
  t.match(await call('POST', `${ETH0}/confirm`), { status: 503, body: { error: { code: 'SERVICE_UNAVAILABLE', details: 'IO' } } })
  system.answer(keeps, ['done'])
  t.match(await call('POST', `${ETH0}/confirm`), { status: 200 })
  t.match(here.events.at(-1), { type: 'network_confirmed' })
})

t.test('a confirmation that comes too late is refused, and the end is told', async (t) => {
  const here = await rig(t)
  const { call, system } = here
  await reachable(here)
  system.answer('network-trials', ['done'])
  system.answer('network-keep', ['failed NO_TRIAL it is over'])
  t.match(await call('POST', `${ETH0}/confirm`), { status: 409, body: { error: { message: 'it is over', details: 'NO_TRIAL' } } })
  t.match(await here.told('network_reverted'), { data: { reason: 'timeout' } })
})

t.test('one that cannot be taken back is not told as taken back', async (t) => {
  const here = await rig(t, { expires: 100 })
  here.system.answer('network-trials', [DATA({ interface: 'eth0', expires: new Date().toISOString() }), 'done'])
  here.system.answer('network-revert', ['failed NETWORK the network service does not take it'])
  await here.call('PUT', ETH0, STATIC)
  t.match(await here.told('network_failed'), { data: { interface: 'eth0', action: 'revert', error: /does not take it/ } })
  t.notOk(here.events.some(({ type }) => type === 'network_reverted'))
})

for (const kept of [true, false]) {
  t.test(`a system service that does not answer whether it keeps it: ${kept ? 'kept' : 'taken back'}`, async (t) => {
    const here = await rig(t)
    const { call, net, system } = here
    await reachable(here)
    const { ip_address, gateway, dns_servers } = STATIC
    net.networkd(2, `[Network]\nAddress=${ip_address}/24\nGateway=${gateway}\nDNS=${dns_servers}\n`)
    system.answer('network-keep', (_, { close }) => close())
    t.match(await call('POST', `${ETH0}/confirm`), { status: 500 })
    t.not(await onTrial(here), null, 'as long as the system service is at it')
    if (!kept) net.networkd(2, '[Network]\nDHCP=yes\n')
    system.answer('network-trials', ['done'])
    const [told, other] = kept ? ['network_confirmed', 'network_reverted'] : ['network_reverted', 'network_confirmed']
    t.match(await here.told(told), { data: kept ? { ip_address, gateway } : { reason: 'timeout' } })
    t.notOk(here.events.some(({ type }) => type === other))
    t.equal(trialIn((await call('GET', '/api/network/config')).body), null)
  })
}

t.test('a change that the system service refuses is told as taken back', async (t) => {
  const here = await rig(t)
  here.system.answer('network-set', ['failed INVALID no such thing'])
  t.match(await here.call('PUT', ETH0, STATIC), { status: 200 })
  t.match(await here.told('network_reverted'), { data: { reason: 'failed', error: 'no such thing' } })
  t.same(here.system.asked('network-revert'), ['network-revert eth0'], 'what was done half, if anything')
  t.equal(trialIn((await here.call('GET', '/api/network/config')).body), null)
})

t.test('a server that starts during a trial takes it over', async (t) => {
  const first = await rig(t)
  await first.call('PUT', ETH0, STATIC)
  await onTrial(first)
  first.net.networkd(2, '[Network]\nAddress=192.168.1.20/24\n')
  first.net.hold('eth0', '192.168.1.20/24')
  const log = pino({ level: 'silent' })
  const agent = new SystemAgent(first.system.socket)
  const second = new NetworkTrials(agent, first.net.reader, new Bus(), log, { ports: () => [8080] })
  t.teardown(() => second.stop())
  second.start()
  await until(
    () => second.endOf('eth0'),
    (end) => end !== null,
    'the trial',
  )
  first.net.connections(['192.168.1.7', 8080, '192.168.1.99'])
  await t.rejects(second.confirm('eth0', '192.168.1.99'), { code: 'CONFLICT' }, 'it knows which address is the new one')
  first.net.connections(['192.168.1.20', 8080, '192.168.1.99'])
  await second.confirm('eth0', '192.168.1.99')
  t.equal(second.endOf('eth0'), null)
})

t.test('what is refused changes nothing', async (t) => {
  const { call, system, events } = await rig(t)
  const table: [path: string, body: Body, status: number, details: string][] = [
    ['eth9', STATIC, 404, 'interface eth9'],
    ['..%2Feth0', STATIC, 400, 'params.name'],
    ['lo', STATIC, 422, 'name'],
    ['eth0', {}, 400, 'body.method'],
    ['eth0', { method: 'bootp' }, 400, 'body.method'],
    ['eth0', { ...STATIC, mtu: 9000 }, 400, 'body.mtu'],
    ['eth0', { method: 'static' }, 400, 'body.ip_address'],
    ['eth0', { ...STATIC, netmask: '255.0.255.0' }, 400, 'body.netmask'],
    ['eth0', { ...STATIC, netmask: 64 }, 400, 'body.netmask'],
    ['eth0', { ...STATIC, gateway: '10.0.0.1' }, 400, 'body.gateway'],
    ['eth0', { ...STATIC, dns_servers: ['a b'] }, 400, 'body.dns_servers.0'],
    ['eth0', { ...STATIC, dns_servers: Array(5).fill('9.9.9.9') }, 400, 'body.dns_servers'],
    ['eth0', { ...STATIC, method: 'dhcp' }, 400, 'body.ip_address'],
    ['eth0', { ...STATIC, ip_address: '10.20.1.1', gateway: null }, 409, 'eth1 10.20.0.5/16'],
  ]
  for (const [name, body, status, details] of table) {
    const answer = await call('PUT', `/api/network/interfaces/${name}`, body)
    t.match(answer, { status, body: { error: { details } } }, `${name} ${JSON.stringify(body)}`)
  }
  t.match(await call('POST', '/api/network/interfaces/eth9/confirm'), { status: 404 })
  t.match(await call('DELETE', '/api/network/interfaces/eth9/trial'), { status: 404 })
  t.match(await call('POST', '/api/network/reset', { confirm: false }), { status: 400 })
  t.same(
    system.requests.filter((line) => line !== 'network-trials'),
    [],
  )
  t.same(events, [])
})

t.test('reset and restart act after their answer; a reset ends what is on trial', async (t) => {
  const here = await rig(t)
  const { call, system } = here
  await call('PUT', ETH0, STATIC)
  t.match(await call('POST', '/api/network/restart'), { status: 409 }, 'a change is under way')
  await onTrial(here)
  t.match(await call('POST', '/api/network/reset', { confirm: true }), { status: 200, body: { success: true } })
  t.match(
    await call('PUT', '/api/network/interfaces/eth1', { method: 'dhcp' }),
    { status: 409 },
    'the network is about to be reset',
  )
  t.match(await here.told('network_reverted'), { data: { interface: 'eth0', reason: 'reset' } })
  t.same(system.asked('network-reset'), ['network-reset'])
  for (const [index, body] of [undefined, {}].entries()) {
    t.match(await call('POST', '/api/network/reset', body), { status: 200 }, 'none of its fields must be sent')
    await until(
      () => system.asked('network-reset').length,
      (asked) => asked === index + 2,
      'the reset',
    )
  }
  t.match(await call('POST', '/api/network/restart'), { status: 200 })
  await until(
    () => system.asked('network-restart').length,
    (asked) => asked === 1,
    'the restart',
  )
  t.match(here.events.at(-1), { category: 'config', type: 'network_restart' })
})

t.test('elsewhere than on the appliance: reading works, acting does not', async (t) => {
  const { call, system, events } = await rig(t, { appliance: false })
  t.match(await call('GET', '/api/network/interfaces'), {
    body: { interfaces: [{ name: 'eth0', trial: null }, { name: 'eth1' }] },
  })
  t.match(await call('GET', '/api/network/interfaces?loopback=true'), { body: { interfaces: { length: 3 } } })
  t.match(await call('GET', '/api/network/config'), {
    body: {
      interfaces: { eth0: { method: 'dhcp', ip_address: '192.168.1.7', netmask: '255.255.255.0', prefix: 24 } },
      ports: { rtsp: [554] },
    },
  })
  const refused = { status: 422, body: { error: { code: 'UNSUPPORTED_SETTING' } } }
  t.match(await call('PUT', ETH0, STATIC), refused)
  t.match(await call('POST', `${ETH0}/confirm`), refused)
  t.match(await call('DELETE', `${ETH0}/trial`), refused)
  t.match(await call('POST', '/api/network/reset', { confirm: true }), refused)
  t.match(await call('POST', '/api/network/restart'), refused)
  t.same(system.requests, [])
  t.same(events, [])
})

/** The status of a confirmation that names `host`, which `fetch` would not send. */
function withHost(port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { host: `${host}:${port}`, authorization: 'Bearer admin' }
    const request = httpRequest({ port, host: '127.0.0.1', method: 'POST', path: `${ETH0}/confirm`, headers }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
    request.on('error', reject).end()
  })
}
