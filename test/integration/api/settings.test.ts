/** The state keys over HTTP: the same rights, ranges and order as on the WebSocket. */
import t from 'tap'
import { type Api, login } from '../../support/api.ts'
import { startQuickServer } from '../../support/server.ts'

const PASSWORD = 'Battery-Staple-7'

t.test('settings', async (t) => {
  const server = await startQuickServer(t, { args: ['--rate-limits', 'off'] })
  const admin = await login(server)
  const user = async (username: string, fields: object): Promise<Api> => {
    await admin.post('/api/users', { username, password: PASSWORD, ...fields })
    return login(server, username, PASSWORD)
  }
  const operator = await user('operator', { role: 'operator' })
  const viewer = await user('viewer', { role: 'viewer' })
  const elsewhere = await user('elsewhere', { role: 'operator', cameras: [3] })
  const value = async (api: Api, name: string) => (await api.get(`/api/settings/${name}`)).body as unknown

  await t.test('one key is a bare value', async (t) => {
    const posts: [name: string, value: unknown][] = [
      ['brightness', 42],
      ['recordingMode', 'timelapse'],
      ['timelapseInterval', 1000],
      ['videoRecordingSettings', { resolution: '1280x720', fps: 30, bitrate: 4_000_000, audio: false, format: 'mp4' }],
    ]
    for (const [name, given] of posts) {
      const answer = await operator.post(`/api/settings/${name}`, JSON.stringify(given))
      t.same([answer.status, answer.body], [200, given], name)
      t.same(await value(viewer, name), given)
    }
    t.equal(await value(viewer, 'light0'), null)
    t.match((await viewer.get('/api/v1/settings/brightness')).body, { status: 'success', data: 42 })
  })

  await t.test('all that may be read, and batches', async (t) => {
    const { body } = await viewer.get('/api/settings')
    t.match(body, { brightness: 42, recordingState: 'stopped', recordingMode: 'timelapse' })
    const batch = await operator.post('/api/settings', { contrast: 61, saturation: 62, recordingQueueSize: 7 })
    t.same([batch.status, batch.body], [200, { contrast: 61, saturation: 62, recordingQueueSize: 7 }])
    t.match(await operator.post('/api/settings', { contrast: 1, saturation: 101 }), {
      status: 400,
      body: { error: { details: 'saturation' } },
    })
    t.equal(await value(viewer, 'contrast'), 61, 'a batch is checked whole')
  })

  await t.test('ranges, names, rights and bodies', async (t) => {
    const refusals: [api: Api, name: string, body: unknown, status: number, code: string][] = [
      [operator, 'brightness', 101, 400, 'INVALID_REQUEST'],
      [operator, 'brightness', '"42"', 400, 'INVALID_REQUEST'],
      [operator, 'brightness', 'null', 400, 'INVALID_REQUEST'],
      [operator, 'brightness', '{', 400, 'INVALID_REQUEST'],
      [operator, 'brightness', undefined, 400, 'INVALID_REQUEST'],
      [operator, 'fps', 61, 400, 'INVALID_REQUEST'],
      [operator, 'resolution', '"1281x721"', 422, 'INVALID_RESOLUTION'],
      [
        operator,
        'timelapseSettings',
        { interval: 100, resolution: '640x480', duration: 1e300, format: 'mp4' },
        400,
        'INVALID_REQUEST',
      ],
      [
        operator,
        'timelapseSettings',
        { interval: 100, resolution: '641x480', duration: 9000, format: 'mp4' },
        422,
        'INVALID_RESOLUTION',
      ],
      [operator, 'light0', true, 422, 'UNSUPPORTED_SETTING'],
      [operator, 'nothing', 1, 404, 'NOT_FOUND'],
      [operator, 'constructor', 1, 404, 'NOT_FOUND'],
      [viewer, 'brightness', 1, 403, 'PERMISSION_DENIED'],
      [elsewhere, 'brightness', 1, 403, 'PERMISSION_DENIED'],
    ]
    for (const [api, name, body, status, code] of refusals) {
      const answer = await api.post(`/api/settings/${name}`, body)
      t.match(answer, { status, body: { error: { code } } }, `${name} ${JSON.stringify(body)}`)
    }
    t.match(await viewer.get('/api/settings/nothing'), { status: 404 })
    for (const body of [[], 7, null]) t.match(await operator.post('/api/settings', JSON.stringify(body)), { status: 400 })
    t.equal(await value(viewer, 'brightness'), 42)
  })

  await t.test('values that are one under two names stay one, whoever writes meanwhile', async (t) => {
    for (let n = 1; n <= 15; n++) {
      await Promise.all([
        operator.post('/api/settings', { brightness: 42 - (n % 2), timelapseInterval: 1000 + n }),
        admin.post('/api/settings', { timelapseDuration: 60_000 + n }),
      ])
      const { timelapseSettings, ...rest } = (await viewer.get('/api/settings')).body
      t.match(timelapseSettings, { interval: 1000 + n, duration: 60_000 + n })
      t.match(rest, { timelapseInterval: 1000 + n, timelapseDuration: 60_000 + n })
    }
  })

  await t.test('who may not see the active camera does not see its keys', async (t) => {
    const { body } = await elsewhere.get('/api/settings')
    t.notOk('brightness' in body)
    t.ok('recordingMode' in body)
    t.match(await elsewhere.get('/api/settings/brightness'), { status: 403 })
    t.match(await elsewhere.post('/api/settings', { recordingQueueSize: 8, brightness: 1 }), { status: 403 })
    t.equal(await value(viewer, 'recordingQueueSize'), 7)
  })

  await t.test('the schema says what a key takes and who may set it', async (t) => {
    t.match((await viewer.get('/api/settings/schema')).body, {
      brightness: { schema: { type: 'integer', minimum: 0, maximum: 100 }, write: ['Media_rw'], writable: false },
      recordingStorage: { read: ['Storage_r', 'Storage_rw'], default: { primary: '/media/data/recordings' } },
    })
    t.match((await operator.get('/api/settings/schema')).body, { brightness: { writable: true } })
  })

  await t.test('recording starts and stops by its key, and holds the mode meanwhile', async (t) => {
    await operator.post('/api/settings/recordingMode', JSON.stringify('video'))
    t.match(await operator.post('/api/settings/record', true), { status: 200, body: true })
    t.match(await operator.post('/api/settings/fps', 15), { status: 409, body: { error: { code: 'RECORDING_IN_PROGRESS' } } })
    t.match(await operator.post('/api/settings/brightness', 50), { status: 200 })
    t.match(await operator.post('/api/settings/record', false), { status: 200, body: false })
    const { entries } = (await admin.get('/api/audit?action=recording.started')).body
    t.match(entries, [{ username: 'operator', address: '127.0.0.1' }])
  })
})
