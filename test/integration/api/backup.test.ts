/** Backups of the settings: into a second, empty device, and never half. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Api, call, type Json, login, until } from '../../support/api.ts'
import { startQuickServer, type TestServer } from '../../support/server.ts'

const PASSWORD = 'Battery-Staple-7'
const PASSPHRASE = 'a long enough passphrase'
const PATH = '/api/system/backup/config'
const args = ['--rate-limits', 'off', '--camera', 'test']

/** All that a backup holds, as the API shows it. */
async function settingsOf(api: Api): Promise<Record<string, unknown>> {
  const { body: config } = await api.get('/api/config')
  const { body: settings } = await api.get('/api/settings')
  const { users } = (await api.get('/api/users')).body
  return { config, settings, users: JSON.parse(JSON.stringify(users)).map(({ created_at: _, ...user }: Json) => user) }
}

async function fileOf(server: TestServer, api: Api, name: string): Promise<Json> {
  const { bytes } = await api.bytes(`${PATH}/${name}`)
  t.equal(
    server.log.some((line) => line.includes(PASSPHRASE)),
    false,
    'the passphrase is in no log',
  )
  return JSON.parse(bytes.toString()) as Json
}

async function furnish(api: Api): Promise<void> {
  await api.put('/api/config/storage', { storage: { retention_days: 3, quota_bytes: 10 ** 12 } })
  await api.patch('/api/config/logging', { logging: { components: { config: 'warn' } } })
  await api.post('/api/settings', { brightness: 33, resolution: '640x360', recordingQueueSize: 4, timelapseInterval: 900 })
  await api.post('/api/users', { username: 'eve', password: PASSWORD, role: 'operator', email: 'eve@example.org', cameras: [0] })
  await api.post('/api/users', { username: 'second', password: PASSWORD, role: 'admin' })
}

t.test('backups', async (t) => {
  const first = await startQuickServer(t, { args })
  const admin = await login(first)
  await furnish(admin)
  const wanted = await settingsOf(admin)

  await t.test('made, listed, downloaded, removed', async (t) => {
    const made = await admin.post(PATH, { backup_name: 'plain' })
    t.match(made, { status: 200, body: { success: true, name: 'plain', includes_secrets: false, path: `${PATH}/plain` } })
    t.equal(statSync(join(first.dataDir, 'backups/plain.json')).mode & 0o777, 0o600)
    t.equal(statSync(join(first.dataDir, 'backups/plain.json')).size, Number(made.body.size))
    t.match(await admin.post(PATH, { backup_name: 'plain' }), { status: 409 })
    const unnamed = await admin.post(PATH)
    t.match(unnamed.body.name, /^settings_\d{8}_\d{6}$/)
    t.match((await admin.get(PATH)).body, { total: 2, backups: [{ name: unnamed.body.name }, { name: 'plain' }] })
    t.match(await admin.delete(`${PATH}/${unnamed.body.name}`), { status: 200 })
    t.match(await admin.delete(`${PATH}/${unnamed.body.name}`), { status: 404 })
    const text = JSON.stringify(await fileOf(first, admin, 'plain'))
    t.notMatch(text, /\$2[aby]\$/, 'no password hashes')
    t.match(await admin.post(PATH, { include_logs: true }), { status: 422, body: { error: { code: 'UNSUPPORTED_SETTING' } } })
    t.match(await admin.post(PATH, { include_secrets: true }), { status: 400, body: { error: { details: 'body.passphrase' } } })
    for (const name of ['../plain', '.plain', 'a/b', '']) t.match(await admin.post(PATH, { backup_name: name }), { status: 400 })
  })

  await t.test('with secrets: encrypted, and logins work on the other device', async (t) => {
    t.match(await admin.post(PATH, { backup_name: 'whole', include_secrets: true, passphrase: PASSPHRASE }), { status: 200 })
    const file = await fileOf(first, admin, 'whole')
    t.notMatch(JSON.stringify(file), /eve|\$2[aby]\$/)

    const second = await startQuickServer(t, { args })
    const other = await login(second)
    t.match(await other.put(`${PATH}/whole`, file), { status: 200, body: { name: 'whole', includes_secrets: true } })
    const restore = (body: object) => other.post('/api/system/restore/config', { backup_name: 'whole', ...body })
    t.match(await restore({}), { status: 400, body: { error: { details: 'body.passphrase' } } })
    t.match(await restore({ passphrase: `${PASSPHRASE}!` }), { status: 400, body: { error: { details: 'body.passphrase' } } })
    const before = await settingsOf(other)
    const dry = await restore({ passphrase: PASSPHRASE, dry_run: true })
    t.match(dry, { status: 200, body: { dry_run: true, skipped: [] } })
    const changes = dry.body.changes as unknown as string[]
    for (const change of ['storage.retention_days', 'recordingQueueSize', 'camera 0', 'user eve: created', 'user admin: changed'])
      t.ok(changes.includes(change), change)
    t.same(await settingsOf(other), before, 'a dry run changes nothing')

    t.match(await restore({ passphrase: PASSPHRASE, restart_services: true }), { status: 200, body: { changes } })
    // The own password is another one now: all that it had opened has ended.
    const again = await login(second)
    t.same(await settingsOf(again), wanted)
    await login(second, 'eve', PASSWORD)
    t.match((await again.get('/api/config/history?limit=1')).body, { changes: [{ username: 'admin' }] })
    t.match((await again.post('/api/system/restore/config', { backup_name: 'whole', passphrase: PASSPHRASE })).body, {
      changes: [],
    })
    const digest = await fetch(`${second.base}/api/status`, { headers: { authorization: `Basic ${btoa(`eve:${PASSWORD}`)}` } })
    t.equal(digest.status, 200)
    t.equal(
      second.log.some((line) => line.includes(PASSPHRASE)),
      false,
    )
    const audit = await again.get('/api/audit?limit=1000')
    t.notMatch(JSON.stringify(audit.body), PASSPHRASE)

    await second.stop()
    const restarted = await startQuickServer(t, { args, dataDir: second.dataDir })
    t.same(await settingsOf(await login(restarted)), wanted, 'it survives a restart')
  })

  await t.test('without secrets: accounts that are there follow, new ones are skipped, others stay', async (t) => {
    await admin.delete('/api/users/eve')
    await admin.put('/api/users/second', { role: 'viewer' })
    await admin.post('/api/users', { username: 'later', password: PASSWORD, role: 'viewer' })
    await admin.put('/api/config/storage', { storage: {} })
    const { body } = await admin.post('/api/system/restore/config', { backup_name: 'plain' })
    t.match(body, { changes: ['storage.retention_days', 'storage.quota_bytes', 'user second: changed'], skipped: [/^user eve/] })
    const { users } = (await admin.get('/api/users')).body
    t.match(users, [{ username: 'admin' }, { username: 'later' }, { username: 'second', role: 'admin' }])
    t.match((await admin.get('/api/config/storage')).body, { storage: { retention_days: 3 } })
  })

  await t.test('what is damaged, foreign or newer is refused, and nothing changes', async (t) => {
    const file = JSON.parse(JSON.stringify(await fileOf(first, admin, 'plain')))
    const before = await settingsOf(admin)
    const wrong: [name: string, value: unknown, status: number, details: string][] = [
      ['a changed value', { ...file, content: { ...file.content, settings: {} } }, 422, 'checksum'],
      ['a changed head', { ...file, created: '2020-01-01T00:00:00.000Z' }, 422, 'checksum'],
      ['a newer release', { ...file, schema_version: 2 }, 422, 'schema_version'],
      ['something else', { hello: 1 }, 422, 'format'],
      ['a missing head', { ...file, created: undefined }, 400, 'backup.created'],
      ['another key', { ...file, surprise: 1 }, 400, 'backup.surprise'],
    ]
    for (const [name, value, status, details] of wrong) {
      t.match(await admin.put(`${PATH}/wrong`, value), { status, body: { error: { details } } }, name)
    }
    t.match(await admin.put(`${PATH}/wrong`, { ...file, surprise: 'x'.repeat(1100 * 1024) }), { status: 413 })
    t.notOk(readdirSync(join(first.dataDir, 'backups')).includes('wrong.json'))
    t.match(await admin.post('/api/system/restore/config', { backup_name: 'nothing' }), { status: 404 })

    // Rightly summed, but wrong inside.
    const { createHash } = await import('node:crypto')
    const forged = (change: object) => {
      const content = { ...file.content, ...change }
      const head = [file.format, file.schema_version, file.server_version, file.created, file.includes_secrets]
      return {
        ...file,
        content,
        checksum: createHash('sha256')
          .update(JSON.stringify([...head, content]))
          .digest('hex'),
      }
    }
    const users = file.content.users as Json[]
    const inside: [change: object, status: number, details: string | RegExp][] = [
      [{ configuration: { storage: { retention_days: -1 } } }, 400, 'backup.content.configuration.storage.retention_days'],
      [{ configuration: { nowhere: {} } }, 400, 'backup.content.configuration.nowhere'],
      [{ settings: { recordingQueueSize: 'many' } }, 400, 'backup.content.settings.recordingQueueSize'],
      [{ configuration: { camera: null } }, 400, 'backup.content.configuration.camera'],
      [{ configuration: [] }, 400, 'backup.content.configuration'],
      [
        { settings: { timelapseSettings: { interval: 100, resolution: '99999x99999', duration: 1000, format: 'mp4' } } },
        400,
        'backup.content.settings.timelapseSettings.resolution',
      ],
      [{ settings: { constructor: 1 } }, 400, 'backup.content.settings.constructor'],
      [{ users: [{ ...users[0], role: 'god' }] }, 400, /^backup\.content\.users/],
      [{ users: users.map((user) => ({ ...user, role: 'viewer' })) }, 409, 'users'],
      [{ cameras: [{ id: 0 }] }, 400, /^backup\.content\.cameras/],
      [{ tag_categories: [{ id: 1, name: 'x', color: 'red' }] }, 400, /^backup\.content\.tag_categories/],
      [{ surprise: {} }, 400, 'backup.content.surprise'],
    ]
    for (const [index, [change, status, details]] of inside.entries()) {
      // A change that would be right comes along: it must not act either.
      const configuration = { storage: { retention_days: 99 } }
      await admin.put(`${PATH}/forged${index}`, forged({ configuration, ...change }))
      const answer = await admin.post('/api/system/restore/config', { backup_name: `forged${index}` })
      t.match(answer, { status, body: { error: { details } } }, JSON.stringify(change))
    }
    t.same(await settingsOf(admin), before)
    const damaged = join(first.dataDir, 'backups/plain.json')
    t.ok(readFileSync(damaged).length > 0)
  })

  await t.test('not during a recording', async (t) => {
    // The camera has been restarted by the restoring before.
    await until(
      () => admin.post('/api/recording/start', {}),
      ({ status }) => status === 200,
      'a recording',
    )
    const refused = await admin.post('/api/system/restore/config', { backup_name: 'plain' })
    t.match(refused, { status: 409, body: { error: { code: 'RECORDING_IN_PROGRESS' } } })
    t.match(await admin.post(PATH, { backup_name: 'meanwhile' }), { status: 200 }, 'but a backup can be made')
    await admin.post('/api/recording/stop')
  })

  t.match(await call(`${first.base}${PATH}`, 'GET', {}), { status: 401 })
})
