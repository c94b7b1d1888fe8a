import t from 'tap'
import { apiRoutes } from '../../../app/server/api/index.ts'
import { openApiDocument } from '../../../app/server/http/index.ts'

/** The operations that must exist so far; each issue of the specification adds its own. */
const OPERATIONS = `
GET /camera.jpeg
GET /image
POST /snapshot
GET /api/camera/status
GET /api/info
GET /api/status
GET /health
GET /api/health
POST /api/recording/start
POST /api/recording/stop
POST /api/recording/tag
POST /api/recording/pause
POST /api/recording/resume
GET /api/recording/triggers
PUT /api/recording/triggers
GET /api/recording/schedule
PUT /api/recording/schedule
GET /api/recording/status
POST /upload
GET /files
GET /api/files
GET /files/{filepath}
GET /download/{filepath}
DELETE /files/{filepath}
GET /api/recordings
POST /api/storage/verify
POST /api/storage/recover
GET /api/recordings/{id}
GET /api/recordings/{id}/info
GET /api/recordings/{id}/thumbnail
POST /api/recordings/{id}/export
GET /api/recordings/{id}/tags
PUT /api/recordings/{id}/tags/{tag_id}
DELETE /api/recordings/{id}/tags/{tag_id}
GET /api/tag-categories
POST /api/tag-categories
PUT /api/tag-categories/{id}
DELETE /api/tag-categories/{id}
GET /api/snapshot
POST /api/login
GET /api/streams
GET /api/v1/status
GET /api/v1/camera/info
POST /api/v1/camera/start
POST /api/v1/camera/stop
GET /api/v1/camera/settings
PUT /api/v1/camera/settings
POST /api/v1/camera/snapshot
GET /api/v1/recordings
DELETE /api/v1/recordings/{id}
POST /api/v1/recording/start
POST /api/v1/recording/stop
POST /api/v1/auth/login
POST /api/v1/auth/logout
PUT /api/users/{name}/password
POST /api/users
GET /api/users/{name}/permissions
GET /api/v1/users
POST /api/v1/users
PUT /api/v1/users/{id}
DELETE /api/v1/users/{id}
GET /api/config
GET /api/config/{section}
PUT /api/config/{section}
PATCH /api/config/{section}
GET /api/config/history
POST /api/config/undo
GET /api/settings
POST /api/settings
GET /api/settings/{name}
POST /api/settings/{name}
GET /api/settings/schema
GET /api/network/interfaces
PUT /api/network/interfaces/{name}
POST /api/network/interfaces/{name}/confirm
DELETE /api/network/interfaces/{name}/trial
GET /api/network/test
GET /api/network/config
POST /api/network/reset
POST /api/network/restart
POST /api/system/backup/config
POST /api/system/restore/config
GET /api/system/updates/check
POST /api/system/updates/install
POST /api/system/updates/rollback
POST /api/system/factory-reset
`
  .trim()
  .split('\n')

/** For admins, reading included. */
const ADMINISTRATION = [
  '/api/system/backup',
  '/api/system/restore',
  '/api/system/certificate',
  '/api/system/updates',
  '/api/users',
  '/api/audit',
  '/api/network',
]

// The table is data: making it touches none of the parts that the handlers use.
const routes = apiRoutes({} as never)

t.test('every operation of the specification that is due stands in the API document', async (t) => {
  const { paths } = openApiDocument(routes, { version: '1' }) as { paths: Record<string, Record<string, unknown>> }
  for (const operation of OPERATIONS) {
    const [method = '', path = ''] = operation.split(' ')
    t.ok(paths[path]?.[method.toLowerCase()], operation)
  }
})

t.test('roles: reading is for viewers at most, changing for operators at least', async (t) => {
  for (const { method, path, access } of routes) {
    if (ADMINISTRATION.some((start) => path.startsWith(start)) && !/permissions$|password$/.test(path)) {
      t.equal(access, 'admin', 'administration, reading included')
      continue
    }
    if (path.includes('/auth/') || path.startsWith('/api/shares') || path.includes('/login') || path.includes('/password'))
      continue
    // Names who did what from where.
    if (path === '/api/config/history') continue
    const expected = method === 'GET' ? ['guest', 'viewer'] : ['operator', 'admin']
    t.ok(expected.includes(access), `${method} ${path}: ${access}`)
  }
})
