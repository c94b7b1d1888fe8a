import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { call, login } from '../../support/api.ts'
import { ADMIN_PASSWORD, startQuickServer, type TestServer } from '../../support/server.ts'

const hash = (algorithm: string, value: string) =>
  createHash(algorithm === 'MD5' ? 'md5' : 'sha256')
    .update(value)
    .digest('hex')

async function curl(...args: string[]): Promise<string> {
  const child = spawn('curl', ['-s', '-o', '/dev/null', '-w', '%{http_code}', ...args])
  return text(child.stdout)
}

interface Attempt {
  readonly algorithm?: 'MD5' | 'SHA-256'
  readonly password?: string
  readonly uri?: string
  readonly nonce?: string
  readonly nc?: string
}

async function nonceOf(server: TestServer): Promise<string> {
  const { headers } = await call(`${server.base}/api/status`, 'GET', {})
  return /nonce="([^"]+)"/.exec(headers.get('www-authenticate') ?? '')?.[1] ?? ''
}

async function digest(server: TestServer, attempt: Attempt) {
  const { algorithm = 'SHA-256', password = ADMIN_PASSWORD, uri = '/api/status', nc = '00000001' } = attempt
  const nonce = attempt.nonce ?? (await nonceOf(server))
  const secret = hash(algorithm, `admin:camera:${password}`)
  const response = hash(algorithm, `${secret}:${nonce}:${nc}:abc:auth:${hash(algorithm, `GET:${uri}`)}`)
  const authorization =
    `Digest username="admin", realm="camera", nonce="${nonce}", uri="${uri}", algorithm=${algorithm}, qop=auth, nc=${nc}, ` +
    `cnonce="abc", response="${response}"`
  return call(`${server.base}/api/status`, 'GET', { authorization })
}

/** For all tests but the last one, which locks the account. */
let server: TestServer

t.before(async () => {
  server = await startQuickServer(t)
})

t.test('curl comes in with --basic, --digest and --anyauth, and with a body', async (t) => {
  const url = `${server.base}/api/status?`
  for (const way of ['--basic', '--digest', '--anyauth']) {
    t.equal(await curl(way, '-u', `admin:${ADMIN_PASSWORD}`, url), '200', way)
    t.equal(await curl(way, '-u', 'admin:wrong', url), '401', `${way} with a wrong password`)
  }
  const body = ['-X', 'PUT', '-H', 'Content-Type: application/json', '-d', '{"brightness":60}']
  t.equal(await curl('--digest', '-u', `admin:${ADMIN_PASSWORD}`, ...body, `${server.base}/api/camera/settings`), '200')
  t.equal(
    await curl('--digest', '-u', `admin:${ADMIN_PASSWORD}`, url, '-o', '/dev/null', url),
    '200200',
    'twice over one connection',
  )
})

t.test('a 401 offers SHA-256, MD5 and Basic, but nothing to a page with a login of its own', async (t) => {
  const { headers } = await call(`${server.base}/api/status`, 'GET', {})
  const offered = headers.get('www-authenticate') ?? ''
  t.match(offered, /^Digest realm="camera".*algorithm=SHA-256.*Digest realm="camera".*algorithm=MD5.*Basic realm="camera"/)
  const page = await call(`${server.base}/api/status`, 'GET', { 'x-requested-with': 'camera' })
  t.equal(page.headers.get('www-authenticate'), null)
})

t.test('sessions are listed and revoked, the own ones by everybody, all by admins', async (t) => {
  const admin = await login(server)
  await admin.post('/api/users', { username: 'jo', password: 'Battery-Staple-7', role: 'viewer' })
  const first = await login(server, 'jo', 'Battery-Staple-7')
  const second = await login(server, 'jo', 'Battery-Staple-7')
  const own = await second.get('/api/auth/sessions')
  t.match(own, { status: 200, body: { total: 2, sessions: [{ username: 'jo', address: '127.0.0.1' }, { username: 'jo' }] } })
  const list = Object.values(own.body.sessions ?? {})
  const other = list.find((session) => String(session.current) === 'false')
  t.match(await second.get('/api/auth/sessions?username=admin'), { status: 403 })
  const admins = (await admin.get('/api/auth/sessions?username=admin')).body.sessions?.[0]
  t.match(await second.delete(`/api/auth/sessions/${admins?.id}`), { status: 404 }, 'those of others do not exist for jo')
  t.match(await second.delete(`/api/auth/sessions/${other?.id}`), { status: 200 })
  t.match(await first.get('/api/status'), { status: 401 })
  t.match(await admin.get('/api/auth/sessions'), { body: { total: 2 } })
  const left = list.find((session) => session !== other)
  t.match(await admin.delete(`/api/auth/sessions/${left?.id}`), { status: 200 })
  t.match(await second.get('/api/status'), { status: 401 })
  t.match(await admin.delete('/api/auth/sessions/none'), { status: 404 })
})

t.test('Digest goes with its grant, and is not there for the factory password', async (t) => {
  const factory = await startQuickServer(t, { factory: true })
  t.equal(await curl('--digest', '-u', 'admin:admin', `${factory.base}/health`), '401')
  const api = await login(server)
  t.match(await digest(server, {}), { status: 200 })
  await api.put('/api/users/admin', { protocols: [] })
  t.match(await digest(server, {}), { status: 401 })
})

t.test('replays, foreign targets, stale nonces and wrong answers', async (t) => {
  const server = await startQuickServer(t)
  const nonce = await nonceOf(server)
  t.match(await digest(server, { nonce }), { status: 200 })
  const replayed = await digest(server, { nonce })
  t.equal(replayed.status, 401)
  t.match(replayed.headers.get('www-authenticate'), /algorithm=SHA-256.*stale=true/)
  t.match(await digest(server, { nonce, nc: '00000002', algorithm: 'MD5' }), { status: 200 })
  t.match((await digest(server, { nonce: 'made-up' })).headers.get('www-authenticate'), /stale=true/)
  const foreign = await digest(server, { uri: '/api/info' })
  t.equal(foreign.status, 401)
  t.notMatch(foreign.headers.get('www-authenticate'), /stale/)
  const codes: unknown[] = []
  for (let i = 0; i < 6; i++) {
    const { status, body } = await digest(server, { password: 'wrong' })
    codes.push(`${status} ${body.error?.code}`)
  }
  t.same(codes, [...Array(5).fill('401 INVALID_CREDENTIALS'), '403 ACCOUNT_LOCKED'])
})
