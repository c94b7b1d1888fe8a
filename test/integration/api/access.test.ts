import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { call, login, PATIENCE_MS } from '../../support/api.ts'
import { scratchFolder } from '../../support/scratch.ts'
import { ADMIN_PASSWORD, startQuickServer, type TestServer } from '../../support/server.ts'

let server: TestServer

t.before(async () => {
  server = await startQuickServer(t, { args: ['--cors-origin', 'https://friend.example', '--log-level', 'trace'] })
})

t.test('the factory password opens nothing but its own change', async (t) => {
  const api = await login(await startQuickServer(t, { factory: true }), 'admin', 'admin')
  for (const path of ['/api/status', '/image', '/api/recordings', '/api/streams']) {
    t.match(await api.get(path), { status: 403, body: { error: { code: 'PASSWORD_CHANGE_REQUIRED' } } }, path)
  }
  t.match(await api.get('/health'), { status: 200 })
  t.match(await api.put('/api/users/admin/password', { current_password: 'admin', new_password: 'weak' }), {
    status: 400,
    body: { error: { code: 'INVALID_REQUEST', details: 'body.new_password' } },
  })
  t.match(await api.put('/api/users/admin/password', { current_password: 'admin', new_password: ADMIN_PASSWORD }), {
    status: 200,
  })
  t.match(await api.get('/api/status'), { status: 200 })
})

t.test('credentials: none, wrong, and each accepted form; logout ends the token', async (t) => {
  const api = await login(server)
  const status = (headers: Record<string, string>, query = '') => call(`${server.base}/api/status${query}`, 'GET', headers)
  const none = await status({})
  t.match(none, { status: 401, body: { error: { code: 'INVALID_CREDENTIALS' } } })
  t.match(none.headers.get('www-authenticate'), /Basic/)
  t.match(await status({ authorization: 'Bearer x' }), { status: 401 })
  const basic = (password: string) => `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`
  t.match(await status({ authorization: basic('wrong') }), { status: 401 })
  t.match(await status({ authorization: basic(ADMIN_PASSWORD) }), { status: 200 })
  t.match(await status({}, `?token=${api.token}`), { status: 200 })
  const answer = await fetch(`${server.base}/api/v1/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'admin', password: ADMIN_PASSWORD }),
  })
  t.match(await answer.json(), {
    status: 'success',
    data: { token_type: 'Bearer', must_change_password: false, user: { username: 'admin', role: 'admin' } },
  })
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? ''
  t.match(await status({ cookie }), { status: 200 })
  t.match(await call(`${server.base}/api/recording/start`, 'POST', { cookie, origin: 'http://evil.example' }, {}), {
    status: 403,
  })
  t.match(await api.post('/api/v1/auth/logout'), { status: 200 })
  t.match(await api.get('/api/status'), { status: 401 })
})

t.test('credentials that a browser remembers do not work for foreign pages', async (t) => {
  const authorization = `Basic ${Buffer.from(`admin:${ADMIN_PASSWORD}`).toString('base64')}`
  const stop = (origin: string) => call(`${server.base}/api/camera/stop`, 'POST', { authorization, origin }, {})
  t.match(await stop('https://evil.example'), { status: 403, body: { error: { code: 'PERMISSION_DENIED' } } })
  t.match(await stop('https://friend.example'), { status: 200 })
  t.match(await stop(server.base), { status: 200 })
})

t.test('no secret reaches the log', async (t) => {
  const api = await login(server)
  await api.get(`/api/status?token=${api.token}`)
  await call(`${server.base}/api/login`, 'POST', {}, { username: 'admin', password: 'Wrong-Secret-1' })
  const log = server.log.join('\n')
  for (const secret of [api.token, ADMIN_PASSWORD, 'Wrong-Secret-1']) t.notOk(log.includes(secret))
})

t.test('HTTPS answers with the certificate made at the first start', async (t) => {
  const curl = spawnSync('curl', [
    '-sk',
    '-u',
    `admin:${ADMIN_PASSWORD}`,
    `https://127.0.0.1:${server.ports.https}/api/v1/status`,
  ])
  t.match(JSON.parse(curl.stdout.toString()), { status: 'success' })
})

t.test('a taken port or a data folder in use: one line, status 2', async (t) => {
  const blocker = createServer().listen(0, '127.0.0.1')
  await once(blocker, 'listening')
  t.teardown(() => blocker.close())
  const { port } = blocker.address() as AddressInfo
  const ports = { 'http-port': '0', 'https-port': '0', 'rtsp-port': '0', 'rtsps-port': '0', 'dashboard-port': '0' }
  const program = join(import.meta.dirname, '../../../dist/camera-server')
  const run = (options: Record<string, string>) => {
    const args = Object.entries({ bind: '127.0.0.1', 'log-level': 'silent', ...ports, ...options }).flatMap(([name, value]) => [
      `--${name}`,
      value,
    ])
    return spawnSync(program, args, { encoding: 'utf8', timeout: PATIENCE_MS })
  }
  for (const name of ['http-port', 'rtsp-port', 'dashboard-port']) {
    const { status, stdout, stderr } = run({ 'data-dir': scratchFolder(t, 'taken'), [name]: String(port) })
    t.equal(status, 2, name)
    t.equal(stdout, '')
    t.match(stderr, new RegExp(`^camera-server: .*${port}.*\n$`))
  }
  const second = run({ 'data-dir': server.dataDir })
  t.equal(second.status, 2)
  t.match(second.stderr, /^camera-server: the data folder is in use by process \d+\n$/)
})
