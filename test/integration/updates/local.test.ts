/** Bundles that are here: uploaded, or on a medium. */
import { copyFileSync, existsSync, mkdirSync, readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Json, jobDone, login, until } from '../../support/api.ts'
import { makeBundle } from '../../support/bundles.ts'
import { startQuickServer } from '../../support/server.ts'
import { PATH, slots, startAppliance, upload } from './harness.ts'

t.test('elsewhere than on the appliance nothing of all that is done', async (t) => {
  const server = await startQuickServer(t, { args: ['--rate-limits', 'off'] })
  const api = await login(server)
  const unsupported = { status: 422, body: { error: { code: 'UNSUPPORTED_SETTING' } } }
  t.match(await api.get(`${PATH}/check`), unsupported)
  t.match(await api.get(`${PATH}/status`), unsupported)
  t.match(await api.post(`${PATH}/install`, { update_id: 'upload:a.raucb' }), unsupported)
  t.match(await api.post(`${PATH}/rollback`), unsupported)
  t.match(await api.delete(`${PATH}/failures`), unsupported)
  t.match(await api.delete(`${PATH}/upload/upload:a.raucb`), unsupported)
  t.match(await api.put(`${PATH}/config`, { allow_downgrade: true }), unsupported)
  t.match(await api.post('/api/system/factory-reset', { confirm: true, preserve_users: true }), unsupported)
  t.match(await api.post('/api/system/reboot', { force: true }), unsupported)
  const file = join(server.dataDir, 'server.pid')
  t.match(await upload(server, api, file, 'a.raucb'), unsupported)
  t.match((await api.get(`${PATH}/config`)).body, { allow_downgrade: false })
  t.same(readdirSync(join(server.dataDir, 'updates')), [])
  t.equal(existsSync(join(server.dataDir, 'persistent/users-carry-over.json')), false)
})

t.test('bundles that are here', async (t) => {
  const appliance = await startAppliance(t, {
    install: async (_args, { say }) => {
      for (const percent of [0, 20, 40, 99, 100]) say(`progress ${percent} step ${percent}`)
      say('done')
    },
  })
  const { server, api, folder, media, trusted, stranger, shelf, system } = appliance
  const file = (name: string) => join(folder, name)
  makeBundle(file('new'), trusted, { version: '1.3.0', description: 'better pictures' })
  makeBundle(file('old'), trusted, { version: '1.0.0' })
  makeBundle(file('other'), trusted, { version: '1.3.0', compatible: 'camera-server-other' })
  makeBundle(file('strange'), stranger, { version: '1.4.0' })
  const listed = async (id: string): Promise<Json | undefined> => {
    const updates = (await api.get(`${PATH}/check`)).body.updates as unknown as Json[]
    return updates.find((update) => String(update.id) === id)
  }
  const install = (update_id: string, more: object = {}) => api.post(`${PATH}/install`, { update_id, ...more })

  await t.test('nothing is offered at first', async (t) => {
    t.match((await api.get(`${PATH}/check`)).body, {
      current: { version: '1.2.3', board: 'test', slot: 'A' },
      update_available: false,
      updates: [],
      index: null,
    })
  })

  await t.test('an uploaded bundle is looked into, and offered', async (t) => {
    t.match(await upload(server, api, file('new'), 'camera 1.3.0.raucb'), {
      status: 200,
      body: { success: true, id: 'upload:camera_1.3.0.raucb', version: '1.3.0', valid: true, reason: null },
    })
    t.same(readdirSync(shelf), ['camera_1.3.0.raucb'], 'and nothing else')
    t.match((await api.get(`${PATH}/check`)).body, { update_available: true })
    const { entries } = (await api.get('/api/audit?action=config.update_uploaded')).body as unknown as { entries: Json[] }
    t.match(entries, [{ username: 'admin', data: { id: 'upload:camera_1.3.0.raucb', version: '1.3.0', valid: true } }])
    t.match(await listed('upload:camera_1.3.0.raucb'), {
      source: 'upload',
      installable: true,
      newer: true,
      build: '20261101',
      notes: 'better pictures',
      reason: null,
    })
  })

  await t.test('what is no upload leaves nothing', async (t) => {
    t.match(await upload(server, api, file('new'), 'camera.zip'), { status: 400, body: { error: { details: 'body.file' } } })
    t.match(await upload(server, api, file('new'), 'camera.raucb', 'other'), {
      status: 400,
      body: { error: { details: 'body.other' } },
    })
    const broken = new AbortController()
    const slow = new ReadableStream({
      pull: (out) => {
        out.enqueue(Buffer.from('--x\r\ncontent-disposition: form-data; name="file"; filename="a.raucb"\r\n\r\nhello'))
        broken.abort()
      },
    })
    const headers = { authorization: `Bearer ${api.token}`, 'content-type': 'multipart/form-data; boundary=x' }
    const init = { method: 'POST', headers, body: slow, duplex: 'half', signal: broken.signal }
    await t.rejects(fetch(`${server.base}${PATH}/upload`, init as RequestInit))
    await until(
      () => readdirSync(shelf),
      (names) => names.length === 1,
      'the end of the upload that broke off',
    )
    t.match(await upload(server, api, file('old'), 'after.raucb'), { status: 200 }, 'and its place is free')
  })

  await t.test('a bundle of a stranger, or cut off, is listed and refused', async (t) => {
    t.match((await upload(server, api, file('strange'), 'strange.raucb')).body, { valid: false, version: null })
    t.match(await listed('upload:strange.raucb'), {
      valid: false,
      installable: false,
      newer: false,
      reason: /signature|certificate/,
    })
    t.match(await install('upload:strange.raucb'), { status: 422, body: { error: { code: 'INVALID_FORMAT' } } })
    copyFileSync(file('new'), file('cut'))
    truncateSync(file('cut'), 20_000)
    t.match((await upload(server, api, file('cut'), 'strange.raucb')).body, { valid: false }, 'the same name takes its place')
    t.match(await install('upload:strange.raucb'), { status: 422 })
  })

  await t.test('another device, an older release', async (t) => {
    await upload(server, api, file('other'), 'other.raucb')
    t.match(await install('upload:other.raucb'), {
      status: 422,
      body: { error: { code: 'UNSUPPORTED_SETTING', message: /camera-server-other.*camera-server-test/ } },
    })
    await upload(server, api, file('old'), 'old.raucb')
    t.match(await install('upload:old.raucb'), { status: 409, body: { error: { details: 'allow_downgrade' } } })
    t.match(await api.put(`${PATH}/config`, { allow_downgrade: true }), { status: 200 })
    t.match(await listed('upload:old.raucb'), { installable: true, newer: false })
    t.match(await api.put(`${PATH}/config`, {}), { status: 200, body: { allow_downgrade: false } })
    t.equal(readdirSync(shelf).length, 3, 'only the last three are kept')
    t.equal(existsSync(join(shelf, 'camera_1.3.0.raucb')), false)
  })

  await t.test('an uploaded bundle can be removed, and nothing else', async (t) => {
    const remove = (id: string) => api.delete(`${PATH}/upload/${encodeURIComponent(id)}`)
    writeFileSync(join(shelf, 'hawkbit-token'), 'x')
    for (const id of ['upload:none.raucb', 'old.raucb', 'upload:..', 'upload:hawkbit-token', 'media:old.raucb'])
      t.match(await remove(id), { status: 404, body: { error: { code: 'NOT_FOUND' } } }, id)
    t.equal(readdirSync(shelf).length, 4)
    t.match(await remove('upload:old.raucb'), { status: 200, body: { success: true } })
    t.equal(await listed('upload:old.raucb'), undefined)
    t.equal(existsSync(join(shelf, 'old.raucb')), false)
    const { entries } = (await api.get('/api/audit?action=config.update_removed')).body as unknown as { entries: Json[] }
    t.match(entries, [{ username: 'admin', data: { id: 'upload:old.raucb' } }])
    t.match(await remove('upload:old.raucb'), { status: 404 })
  })

  await t.test('a medium', async (t) => {
    const stick = join(media, 'stick')
    mkdirSync(stick)
    copyFileSync(file('new'), join(stick, 'new.raucb'))
    copyFileSync(file('new'), join(stick, 'new one.raucb'))
    writeFileSync(join(stick, 'notes.txt'), 'x')
    t.match(await listed('media:stick/new.raucb'), { source: 'media', valid: true, installable: true, version: '1.3.0' })
    t.match(await listed('media:stick/new one.raucb'), { valid: false, reason: /its name/ })
    for (const id of [
      'media:stick/none.raucb',
      'media:stick/../stick/new.raucb',
      'media:stick/notes.txt',
      'upload:none.raucb',
      'none',
    ])
      t.match(await install(id), { status: 404, body: { error: { code: 'NOT_FOUND' } } }, id)
    t.same(system.asked('install'), [], 'so far nothing was installed')
  })

  await t.test('installed: with its progress, a backup before, a restart behind', async (t) => {
    const started = await install('media:stick/new.raucb', { backup_config: true, restart_after: true })
    t.match(started, { status: 200, body: { success: true, status: 'running' } })
    const job = await jobDone(api, started.body)
    t.match(job, {
      kind: 'update_install',
      status: 'succeeded',
      progress: 1,
      role: 'admin',
      username: 'admin',
      message: 'step 100',
    })
    t.match(job.result, { version: '1.3.0', restarting: true })
    t.same(system.asked('install'), [`install ${join(media, 'stick/new.raucb')}`])
    const { backups } = (await api.get('/api/system/backup/config')).body as unknown as { backups: Json[] }
    t.same(
      backups.map(({ name }) => name),
      [job.result?.backup],
    )
    t.match(await install('media:stick/new.raucb'), { status: 409, body: { error: { details: 'restart' } } }, 'about to restart')
    await until(
      () => system.asked('reboot').length,
      (times) => times === 1,
      'the restart',
    )
    const { entries } = (await api.get('/api/audit?action=config')).body as unknown as { entries: Json[] }
    const actions = entries.map(({ action, username }) => `${action} ${username}`)
    t.ok(actions.includes('config.update_installed admin'), actions.join())
  })

  await t.test('one at a time, nothing restarts meanwhile, and the words of RAUC are told', async (t) => {
    let go = () => {}
    system.answer('install', async (_args, { say }) => {
      await new Promise<void>((resolve) => {
        go = resolve
      })
      say('failed SIGNATURE signature verification failed')
    })
    const started = await install('media:stick/new.raucb')
    await until(
      () => system.asked('install').length,
      (times) => times === 2,
      'the installation',
    )
    for (const answer of [
      await install('media:stick/new.raucb'),
      await api.post('/api/system/reboot', { force: true }),
      await api.post(`${PATH}/rollback`),
      await api.post('/api/system/factory-reset', { confirm: true }),
    ])
      t.match(answer, { status: 409, body: { error: { code: 'CONFLICT', details: 'busy' } } })
    go()
    const job = await jobDone(api, started.body)
    const error = { code: 'INVALID_FORMAT', message: 'signature verification failed', details: 'SIGNATURE' }
    t.match(job, { status: 'failed', error })
    t.equal(system.asked('reboot').length, 1)
    t.match((await api.get(`/api/jobs/${started.body.job_id}`)).status, 200)
  })

  await t.test('what the system service has begun is not called off: a cancelled job says what became of it', async (t) => {
    let go = () => {}
    system.answer('install', async (_args, { say }) => {
      await new Promise<void>((resolve) => {
        go = resolve
      })
      say('done')
    })
    const asked = system.asked('install').length
    const started = await install('media:stick/new.raucb', { restart_after: true })
    await until(
      () => system.asked('install').length,
      (times) => times === asked + 1,
      'the installation',
    )
    t.match(await api.delete(`/api/jobs/${started.body.job_id}`), { status: 200, body: { status: 'cancelling' } })
    t.match(await api.post(`${PATH}/rollback`), { status: 409, body: { error: { details: 'busy' } } })
    go()
    t.match(await jobDone(api, started.body), { status: 'succeeded', result: { version: '1.3.0', restarting: false } })
    t.match(await api.post(`${PATH}/rollback`, { preserve_data: false }), { status: 422 }, 'nothing is blocked any more')
  })

  await t.test('what is being installed is not removed', async (t) => {
    t.match(await upload(server, api, file('new'), 'new.raucb'), { status: 200 })
    let go = () => {}
    system.answer('install', async (_args, { say }) => {
      await new Promise<void>((resolve) => (go = resolve))
      say('done')
    })
    const asked = system.asked('install').length
    const started = await install('upload:new.raucb')
    await until(
      () => system.asked('install').length,
      (times) => times === asked + 1,
      'the installation',
    )
    t.match(await api.delete(`${PATH}/upload/upload:new.raucb`), { status: 409, body: { error: { code: 'CONFLICT' } } })
    t.equal(existsSync(join(shelf, 'new.raucb')), true)
    go()
    t.match(await jobDone(api, started.body), { status: 'succeeded' })
    t.match(await api.delete(`${PATH}/upload/upload:new.raucb`), { status: 200 })
  })

  await t.test('not while the release that runs is on trial, or another installation goes on', async (t) => {
    const asked = system.asked('install').length
    system.answer('slots', [...slots().slice(0, -1), 'data pending slot=A version=1.2.3 state=installed', 'done'])
    t.match(await install('media:stick/new.raucb'), { status: 409, body: { error: { code: 'CONFLICT', details: 'trial' } } })
    system.answer('slots', [...slots().slice(0, -1), 'data pending slot=B state=installing', 'done'])
    t.match((await api.get(`${PATH}/status`)).body.pending, { slot: 'B', version: null, state: 'installing' })
    t.match(await install('media:stick/new.raucb'), { status: 409, body: { error: { code: 'CONFLICT', details: 'busy' } } })
    t.equal(system.asked('install').length, asked)
  })
})
