import { once } from 'node:events'
import t from 'tap'
import { WebSocket } from 'ws'
import { call, jobDone, login, until } from '../../support/api.ts'
import { startQuickServer } from '../../support/server.ts'

t.test('deeds over HTTP and WebSocket are in the log with who did them, and no secret is', async (t) => {
  const server = await startQuickServer(t)
  const api = await login(server)
  await call(`${server.base}/api/login`, 'POST', {}, { username: 'admin', password: 'Wrong-Secret-1' })
  await api.post('/api/recording/start', {})
  await api.put('/api/camera/settings', { brightness: 55 })
  await api.post('/api/recording/stop')
  await api.delete('/api/recordings/1')
  const socket = new WebSocket(`ws://127.0.0.1:${server.ports.http}/api/v1?token=${api.token}`)
  t.teardown(() => socket.terminate())
  await once(socket, 'message')
  socket.send(JSON.stringify({ timelapseInterval: 1500 }))
  const by = { username: 'admin', address: '127.0.0.1' }
  const expected = [
    { action: 'config.settings_changed', ...by, data: { keys: ['timelapseInterval'] } },
    { action: 'recording.deleted', ...by, data: { id: 1 } },
    { action: 'recording.stopped', ...by, data: { id: 1, reason: 'stopped' } },
    { action: 'config.camera_changed', ...by, data: { brightness: 55 } },
    { action: 'recording.started', ...by },
    { action: 'auth.login_failed', ...by },
    { action: 'auth.login', ...by },
  ]
  const { body } = await until(
    () => api.get('/api/audit'),
    ({ body }) => Number(body.total) >= expected.length,
    'all entries',
  )
  t.match(body.entries, expected)
  const text = JSON.stringify(body)
  for (const secret of ['Wrong-Secret-1', api.token]) t.notOk(text.includes(secret))
  t.match((await api.get('/api/v1/audit?action=auth&limit=1')).body.data, {
    entries: [{ action: 'auth.login_failed' }],
    total: 2,
    limit: 1,
  })
  const started = (await api.post('/api/audit/verify')).body
  t.match(started, { success: true, status: 'running' })
  t.match(await jobDone(api, started), { status: 'succeeded', result: { broken_at: null }, username: 'admin' })
})
