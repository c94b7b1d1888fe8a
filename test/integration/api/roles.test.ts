import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import t from 'tap'
import { apiRoutes } from '../../../app/server/api/index.ts'
import { type Api, call, login } from '../../support/api.ts'
import { startQuickServer, type TestServer } from '../../support/server.ts'

/**
 * Who may do what, for every route: the least role, and what the request of this test answers to those who may. Reading routes are really
 * called; changing ones get a body that no schema takes, so that nobody's call changes anything and 400 says "you may, but not this".
 */
const TABLE: Readonly<Record<string, [access: 'public' | 'guest' | 'viewer' | 'operator' | 'admin', allowed: number]>> = {
  'POST /api/login': ['public', 400],
  'POST /api/auth/login': ['public', 400],
  'POST /api/auth/logout': ['guest', 400],
  'GET /api/auth/session': ['guest', 200],
  'GET /api/auth/sessions': ['guest', 200],
  'DELETE /api/auth/sessions/{id}': ['guest', 400],
  'POST /api/auth/totp': ['guest', 400],
  'POST /api/auth/totp/verify': ['guest', 400],
  'DELETE /api/auth/totp': ['guest', 400],
  'PUT /api/users/{name}/password': ['guest', 400],
  'GET /api/users': ['admin', 200],
  'POST /api/users': ['admin', 400],
  'PUT /api/users/{id}': ['admin', 400],
  'DELETE /api/users/{id}': ['admin', 400],
  // Everybody asks for the admin's here, which only the admin may.
  'GET /api/users/{name}/permissions': ['admin', 200],
  'POST /api/shares': ['operator', 400],
  'GET /api/shares': ['operator', 200],
  'DELETE /api/shares/{id}': ['operator', 400],
  'GET /api/info': ['guest', 200],
  'GET /api/status': ['guest', 200],
  'GET /health': ['guest', 200],
  'GET /api/health': ['guest', 200],
  'GET /api/audit': ['admin', 200],
  'POST /api/audit/verify': ['admin', 400],
  'GET /api/storage/replication': ['viewer', 200],
  'POST /api/storage/verify': ['admin', 400],
  'POST /api/storage/recover': ['admin', 400],
  'GET /api/jobs': ['viewer', 200],
  'GET /api/jobs/{id}': ['viewer', 404],
  'DELETE /api/jobs/{id}': ['operator', 400],
  'GET /api/system/certificate': ['admin', 200],
  'PUT /api/system/certificate': ['admin', 400],
  'DELETE /api/system/certificate': ['admin', 400],
  'GET /api/network/interfaces': ['admin', 200],
  'PUT /api/network/interfaces/{name}': ['admin', 400],
  'POST /api/network/interfaces/{name}/confirm': ['admin', 400],
  'DELETE /api/network/interfaces/{name}/trial': ['admin', 400],
  'GET /api/network/config': ['admin', 200],
  'GET /api/network/test': ['admin', 200],
  'POST /api/network/reset': ['admin', 400],
  'POST /api/network/restart': ['admin', 400],
  'GET /camera.jpeg': ['guest', 200],
  'GET /image': ['guest', 200],
  'GET /api/snapshot': ['guest', 200],
  'POST /snapshot': ['operator', 400],
  'POST /api/camera/snapshot': ['operator', 400],
  'POST /api/camera/start': ['operator', 400],
  'POST /api/camera/stop': ['operator', 400],
  'GET /api/camera/status': ['guest', 200],
  'GET /api/camera/info': ['viewer', 200],
  'GET /api/camera/settings': ['viewer', 200],
  'PUT /api/camera/settings': ['operator', 400],
  'POST /api/recording/start': ['operator', 400],
  'POST /api/recording/stop': ['operator', 400],
  'POST /api/recording/pause': ['operator', 400],
  'POST /api/recording/resume': ['operator', 400],
  'GET /api/recording/triggers': ['viewer', 200],
  'PUT /api/recording/triggers': ['operator', 400],
  'GET /api/recording/schedule': ['viewer', 200],
  'PUT /api/recording/schedule': ['operator', 400],
  'POST /api/recording/tag': ['operator', 400],
  'GET /api/recording/status': ['viewer', 200],
  'GET /api/recordings': ['viewer', 200],
  'GET /api/recordings/{id}': ['viewer', 404],
  'DELETE /api/recordings/{id}': ['operator', 400],
  'GET /api/recordings/{id}/info': ['viewer', 404],
  'GET /api/recordings/{id}/thumbnail': ['viewer', 404],
  'POST /api/recordings/{id}/export': ['operator', 400],
  'GET /api/recordings/{id}/tags': ['viewer', 404],
  'PUT /api/recordings/{id}/tags/{tag_id}': ['operator', 400],
  'DELETE /api/recordings/{id}/tags/{tag_id}': ['operator', 400],
  'GET /api/tag-categories': ['viewer', 200],
  'POST /api/tag-categories': ['admin', 400],
  'PUT /api/tag-categories/{id}': ['admin', 400],
  'DELETE /api/tag-categories/{id}': ['admin', 400],
  'GET /files': ['viewer', 200],
  'GET /api/files': ['viewer', 200],
  'GET /files/{filepath+}': ['viewer', 404],
  'GET /download/{filepath+}': ['viewer', 404],
  'DELETE /files/{filepath+}': ['operator', 400],
  'POST /upload': ['operator', 400],
  'GET /api/streams': ['viewer', 200],
  'GET /api/config': ['viewer', 200],
  'GET /api/config/{section}': ['viewer', 200],
  'PUT /api/config/{section}': ['operator', 400],
  'PATCH /api/config/{section}': ['operator', 400],
  'GET /api/config/history': ['operator', 200],
  'POST /api/config/undo': ['operator', 400],
  'POST /api/system/backup/config': ['admin', 400],
  'GET /api/system/backup/config': ['admin', 200],
  'GET /api/system/backup/config/{name}': ['admin', 404],
  'PUT /api/system/backup/config/{name}': ['admin', 422],
  'DELETE /api/system/backup/config/{name}': ['admin', 400],
  'POST /api/system/restore/config': ['admin', 400],
  // No appliance.
  'GET /api/system/updates/check': ['admin', 422],
  'GET /api/system/updates/status': ['admin', 422],
  'DELETE /api/system/updates/failures': ['admin', 400],
  'POST /api/system/updates/install': ['admin', 400],
  'POST /api/system/updates/rollback': ['admin', 400],
  'POST /api/system/updates/upload': ['admin', 400],
  'DELETE /api/system/updates/upload/{id}': ['admin', 400],
  'GET /api/system/updates/config': ['admin', 200],
  'PUT /api/system/updates/config': ['admin', 400],
  'POST /api/system/factory-reset': ['admin', 400],
  'POST /api/system/reboot': ['admin', 400],
  'GET /api/settings': ['viewer', 200],
  'GET /api/settings/schema': ['viewer', 200],
  'POST /api/settings': ['operator', 400],
  'GET /api/settings/{name}': ['viewer', 404],
  'POST /api/settings/{name}': ['operator', 404],
}

const ROLES = ['guest', 'viewer', 'operator', 'admin'] as const
const PARAMS: Readonly<Record<string, string>> = {
  id: '999999',
  tag_id: '1',
  name: 'admin',
  filepath: 'no-such-file',
  section: 'storage',
}
const PASSWORD = 'Battery-Staple-7'

/** A token for each kind of caller. */
async function callers(server: TestServer, admin: Api): Promise<Record<string, string | null>> {
  for (const username of ['guest', 'viewer', 'operator', 'disabled']) {
    const role = username === 'disabled' ? 'viewer' : username
    const made = await admin.post('/api/users', { username, password: PASSWORD, role })
    if (made.status !== 200) throw new Error(JSON.stringify(made.body))
  }
  const token = async (username: string) => (await login(server, username, PASSWORD)).token
  const revoked = await login(server, 'viewer', PASSWORD)
  await revoked.post('/api/auth/logout')
  const disabled = await token('disabled')
  await admin.put('/api/users/disabled', { enabled: false })
  return {
    none: null,
    guest: await token('guest'),
    viewer: await token('viewer'),
    operator: await token('operator'),
    admin: admin.token,
    expired: await expired(server, admin.token),
    revoked: revoked.token,
    disabled,
  }
}

/** The admin's own session in a rightly signed token whose time is over. */
async function expired(server: TestServer, token: string): Promise<string> {
  const key = readFileSync(join(server.dataDir, 'keys/token.key'))
  const [header = '', payload = ''] = token.split('.').map((part) => Buffer.from(part, 'base64url').toString())
  if (!payload) throw new Error('no token')
  const past = Math.floor(Date.now() / 1000) - 60
  return new SignJWT({ ...JSON.parse(payload), exp: past }).setProtectedHeader(JSON.parse(header)).sign(key)
}

function expectedStatus(caller: string, [access, allowed]: [string, number]): number {
  if (access === 'public') return allowed
  const rank = ROLES.indexOf(caller as (typeof ROLES)[number])
  if (rank < 0) return 401
  return rank >= ROLES.indexOf(access as (typeof ROLES)[number]) ? allowed : 403
}

const routes = apiRoutes({} as never).map(({ method, path }) => `${method} ${path}`)

t.test('the table knows every route, and no other', async (t) => {
  t.same([...routes].sort(), Object.keys(TABLE).sort())
})

t.test('every route answers every kind of caller as the table says, in both forms', async (t) => {
  const server = await startQuickServer(t, { args: ['--rate-limits', 'off'] })
  const tokens = await callers(server, await login(server))
  for (const [route, entry] of Object.entries(TABLE)) {
    const [method = '', pattern = ''] = route.split(' ')
    const path = pattern.replace(/\{(\w+)\+?\}/g, (_, name: string) => PARAMS[name] ?? '')
    const forms = path.startsWith('/api/') ? [path, path.replace('/api/', '/api/v1/')] : [path]
    for (const [caller, token] of Object.entries(tokens)) {
      for (const form of forms) {
        const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` }
        const body = method === 'GET' ? undefined : JSON.stringify({ no_such_field: true })
        const response = await fetch(`${server.base}${form}`, {
          method,
          headers: { ...headers, ...(body ? { 'content-type': 'application/json' } : {}) },
          ...(body ? { body } : {}),
        })
        await response.arrayBuffer()
        t.equal(response.status, expectedStatus(caller, entry), `${caller}: ${method} ${form}`)
      }
    }
  }
  t.match(await call(`${server.base}/api/openapi.json`, 'GET', {}), { status: 401 })
})
