import { once } from 'node:events'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { type Json, login, until } from '../../support/api.ts'
import { startQuickServer, type TestServer } from '../../support/server.ts'

/** A client that keeps what it was sent. */
async function open(t: Test, server: TestServer, options: { token?: string; headers?: Record<string, string> }) {
  const query = options.token ? `?token=${options.token}` : ''
  const socket = new WebSocket(`ws://127.0.0.1:${server.ports.http}/api/v1${query}`, { headers: options.headers ?? {} })
  const messages: Json[] = []
  const closed = once(socket, 'close') as Promise<[number, Buffer]>
  socket.on('message', (data) => messages.push(JSON.parse(String(data)) as Json))
  t.teardown(() => socket.terminate())
  await once(socket, 'open')
  return {
    socket,
    messages,
    closed,
    send: (message: unknown) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    /** The first message, kept or yet to come, that has `key`. */
    next: async (key: string) =>
      (await until(
        () => messages.find((m) => key in m),
        (m) => m !== undefined,
        `a message with ${key}`,
      )) as Json,
  }
}

t.test('messages and connections', async (t) => {
  const server = await startQuickServer(t)

  await t.test('greeting, get, batch set, broadcast to everybody', async (t) => {
    const { token } = await login(server)
    const first = await open(t, server, { token })
    const second = await open(t, server, { headers: { authorization: `Bearer ${token}` } })
    t.match(await first.next('brightness'), {
      brightness: 50,
      contrast: 50,
      saturation: 50,
      resolution: '1280x720',
      fps: 30,
      record: false,
      recordingState: 'stopped',
      recordingMode: 'video',
      currentRecordingFile: '',
      timelapseInterval: 5000,
      recordingStorage: { primary: '/media/data/recordings', backup: '/media/backup/recordings', network: '' },
      videoRecordingSettings: { resolution: '1920x1080', fps: 60, bitrate: 8_000_000, audio: true, format: 'mp4' },
    })
    await second.next('brightness')
    first.messages.length = 0
    second.messages.length = 0
    first.send({ brightness: 70, contrast: 40, timelapseInterval: 1000 })
    for (const client of [first, second]) {
      t.match(await client.next('brightness'), { brightness: 70 })
      t.match(await client.next('contrast'), { contrast: 40 })
      t.match(await client.next('timelapseInterval'), { timelapseInterval: 1000 })
    }
    first.messages.length = 0
    first.send({ get: ['brightness', 'fps'] })
    t.same(await first.next('fps'), { brightness: 70, fps: 30 })
  })

  await t.test('a batch with one bad value changes nothing; the error names it and the connection stays', async (t) => {
    const client = await open(t, server, await login(server))
    const { brightness } = await client.next('brightness')
    const error = async (message: unknown) => {
      client.messages.length = 0
      void client.send(message)
      return (await client.next('error')).error as Json
    }
    t.match(await error({ brightness: 60, fps: 61 }), { code: 'INVALID_REQUEST', details: 'fps', timestamp: String })
    t.match(await error({ brightness: 60, wings: 2 }), { code: 'INVALID_REQUEST', details: 'wings' })
    t.match(await error({ brightness: 60, resolution: '641x481' }), { code: 'INVALID_RESOLUTION' })
    t.match(await error({ brightness: 60, light0: true }), { code: 'UNSUPPORTED_SETTING', details: 'light0' })
    t.match(await error({ brightness: '60' }), { code: 'INVALID_REQUEST', details: 'brightness' })
    t.match(await error({ recordingStorage: { primary: '/x' } }), { code: 'INVALID_REQUEST' })
    t.match(await error({ currentRecordingFile: 'x' }), { code: 'UNSUPPORTED_SETTING' })
    t.match(await error({ get: ['nothing'] }), { code: 'INVALID_REQUEST', details: 'nothing' })
    t.match(await error({ get: ['fps'], brightness: 60 }), { code: 'INVALID_REQUEST' })
    t.match(await error({ subscribe: ['gossip'] }), { code: 'INVALID_REQUEST' })
    t.match(await error('{not json'), { code: 'INVALID_REQUEST' })
    t.match(await error('[]'), { code: 'INVALID_REQUEST' })
    client.messages.length = 0
    client.send({ get: ['brightness'] })
    t.same(await client.next('brightness'), { brightness })
  })

  await t.test('record and snap act, and subscribers hear of it', async (t) => {
    const api = await login(server)
    const client = await open(t, server, api)
    client.send({ subscribe: ['recording', 'camera'] })
    await client.next('brightness')
    client.messages.length = 0
    client.send({ record: true })
    t.match(await client.next('record'), { record: true })
    t.match(await client.next('recordingState'), { recordingState: 'recording' })
    t.match((await client.next('currentRecordingFile')).currentRecordingFile, /^recording_.*\.mp4$/)
    t.match(await client.next('event'), { event: { category: 'recording', type: 'started', data: { id: 1, camera: 0 } } })
    t.match((await api.get('/api/recording/status')).body, { recording: true })
    client.messages.length = 0
    client.send({ record: true })
    t.match(await client.next('error'), { error: { code: 'RECORDING_IN_PROGRESS' } })
    await until(
      () => api.get('/api/recording/status'),
      ({ body }) => Number(body.duration) >= 1,
      'a second of recording',
    )
    client.messages.length = 0
    client.send({ record: false })
    t.match(await client.next('record'), { record: false })
    t.match(await client.next('event'), {
      event: { category: 'recording', type: 'stopped', data: { reason: 'stopped', state: 'ready' } },
    })
    client.messages.length = 0
    client.send({ snap: true })
    t.match(await client.next('event'), { event: { category: 'camera', type: 'snapshot', data: { filename: /^snapshot_/ } } })
    await until(
      () => client.messages.filter((m) => 'snap' in m).length,
      (n) => n === 2,
      'snap true and false again',
    )
    client.messages.length = 0
    client.send({ unsubscribe: ['camera'] })
    client.send({ snap: true })
    await until(
      () => client.messages.filter((m) => 'snap' in m).length,
      (n) => n === 2,
      'the second still',
    )
    t.notOk(client.messages.some((m) => 'event' in m))
  })

  await t.test('credentials: none within time, wrong, first message, factory password, ended session', async (t) => {
    const api = await login(server)
    const wrong = new WebSocket(`ws://127.0.0.1:${server.ports.http}/api/v1?token=nonsense`)
    const [refusal] = (await once(wrong, 'error')) as [Error]
    t.match(refusal.message, /401/)
    const silent = await open(t, server, {})
    silent.send({ brightness: 1 })
    t.match(await silent.next('error'), { error: { code: 'INVALID_CREDENTIALS' } })
    const late = await open(t, server, {})
    late.send({ auth: { token: api.token } })
    await late.next('brightness')
    const forged = await open(t, server, {})
    forged.send({ auth: { token: 'forged' } })
    t.match(await forged.next('error'), { error: { code: 'INVALID_CREDENTIALS' } })
    t.equal((await forged.closed)[0], 1008)
    await api.post('/api/auth/logout')
    t.equal((await late.closed)[0], 1008, 'logout ends the connection at once')
    t.equal((await silent.closed)[0], 1008, 'no credentials within 5 seconds')
  })

  await t.test('a foreign page cannot open a connection with the cookie', async (t) => {
    const { token } = await login(server)
    const foreign = new WebSocket(`ws://127.0.0.1:${server.ports.http}/api/v1`, {
      headers: { cookie: `camera_session=${token}`, origin: 'http://evil.example' },
    })
    const [refusal] = (await once(foreign, 'error')) as [Error]
    t.match(refusal.message, /403/)
  })

  await t.test('a flood is answered once, then dropped; others go on', async (t) => {
    const { token } = await login(server)
    const [calm, flood] = [await open(t, server, { token }), await open(t, server, { token })]
    await flood.next('brightness')
    flood.messages.length = 0
    for (let i = 0; i < 5000; i++) flood.send({ get: ['fps'] })
    t.match(await flood.next('error'), { error: { code: 'RATE_LIMITED' } })
    t.equal((await flood.closed)[0], 1008)
    calm.messages.length = 0
    calm.send({ get: ['fps'] })
    t.same(await calm.next('fps'), { fps: 30 })
  })

  await t.test('changes reach every client quickly', async (t) => {
    const { token } = await login(server)
    const clients = await Promise.all(Array.from({ length: 10 }, () => open(t, server, { token })))
    await Promise.all(clients.map((client) => client.next('brightness')))
    for (const client of clients) client.messages.length = 0
    clients[0]?.send({ contrast: 33 })
    await Promise.all(clients.map(async (client) => t.match(await client.next('contrast'), { contrast: 33 })))
  })

  await t.test('messages behind the first one wait for it', async (t) => {
    const { token } = await login(server)
    const client = await open(t, server, {})
    client.send({ auth: { token } })
    client.send({ subscribe: ['recording'] })
    client.send({ record: true })
    const { event } = await client.next('event')
    t.match(event, { category: 'recording', type: 'started' })
    t.notOk('actor' in (event ?? {}), 'who did it is for the audit log alone')
    t.notOk(client.messages.some((message) => 'error' in message))
  })
})

t.test('an open connection ends when the time of its session is over', async (t) => {
  const server = await startQuickServer(t, { args: ['--session-timeout', '4'] })
  const { token } = await login(server)
  const client = await open(t, server, { token })
  await client.next('brightness')
  t.equal((await client.closed)[0], 1008)
})
