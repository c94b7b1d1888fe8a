/** Accounts, for admins; what an account may do, for its owner too. */
import { Type } from '@sinclair/typebox'
import { type Auth, PERMISSION_NAMES, PROTOCOLS, type Requester, ROLE_RIGHTS, type UserRecord } from '../auth/index.ts'
import { PermissionDenied } from '../errors.ts'
import { type Caller, ROLES, type Role, type Route, route } from '../http/index.ts'
import { required } from './access.ts'
import { closed, Enum, Nullable, Page, Success } from './schemas.ts'

const Username = Type.String({ pattern: '^[A-Za-z0-9._-]{1,64}$', description: 'letters, digits, dots, - and _, at most 64' })
const Name = Type.Object({ id: Type.String({ minLength: 1, maxLength: 64, description: 'the username' }) })
const Password = Type.String({ minLength: 1, maxLength: 256, format: 'password' })
const Email = Type.String({ maxLength: 254, pattern: '^([^\\s@]+@[^\\s@]+)?$', description: 'an address, or nothing' })
const Protocols = Type.Array(Enum(PROTOCOLS), { maxItems: PROTOCOLS.length, uniqueItems: true })
const Cameras = Nullable(
  Type.Array(Type.Integer({ minimum: 0, maximum: 255 }), {
    maxItems: 256,
    uniqueItems: true,
    description: 'the cameras that the user may see and control; null: all',
  }),
)

/** Each role in both of the specification's spellings. */
const ROLE_NAMES = ['admin', 'operator', 'viewer', 'guest', 'Administrator', 'Operator', 'Viewer', 'Guest'] as const
const RoleName = Enum(ROLE_NAMES)

const User = Type.Object({
  username: Type.String(),
  role: Enum(ROLES),
  email: Type.String(),
  enabled: Type.Boolean(),
  protocols: Protocols,
  cameras: Cameras,
  two_factor: Type.Boolean(),
  must_change_password: Type.Boolean(),
  created_at: Type.String(),
  locked: Type.Boolean({ description: 'after too many failed logins' }),
})
const Changed = Type.Intersect([Success, User])

export function userRoutes(auth: Auth): Route[] {
  const view = (user: UserRecord) => viewOf(user, auth.lockout.isLocked(user.username))
  return [
    route({
      method: 'GET',
      path: '/api/users',
      access: 'admin',
      rate: 'api',
      tag: 'Users',
      summary: 'List the accounts',
      query: Type.Object(Page, closed),
      response: Type.Object({
        users: Type.Array(User),
        total: Type.Integer(),
        limit: Type.Integer(),
        offset: Type.Integer(),
      }),
      handler: ({ query }) => {
        const { limit = 100, offset = 0 } = query
        const all = auth.users.all()
        return { users: all.slice(offset, offset + limit).map(view), total: all.length, limit, offset }
      },
    }),
    route({
      method: 'POST',
      path: '/api/users',
      access: 'admin',
      rate: 'api',
      tag: 'Users',
      summary: 'Create an account',
      body: Type.Object(
        {
          username: Username,
          password: Password,
          role: RoleName,
          email: Type.Optional(Email),
          protocols: Type.Optional(Protocols),
          cameras: Type.Optional(Cameras),
          must_change_password: Type.Optional(Type.Boolean({ description: 'at the first login' })),
        },
        closed,
      ),
      response: Changed,
      errors: ['CONFLICT', 'SERVICE_UNAVAILABLE'],
      handler: async ({ body, caller, address }) => {
        const user = await auth.accounts.create(requester(caller, address), { ...body, role: roleOf(body.role) })
        return { success: true, ...view(user) }
      },
    }),
    route({
      method: 'PUT',
      path: '/api/users/{id}',
      access: 'admin',
      rate: 'api',
      tag: 'Users',
      summary: 'Change an account; what it has opened ends where its rights or password change',
      description:
        'A protocol granted without a password in the same request acts from the next login of the user: its secret is made from the password.',
      params: Name,
      body: Type.Object(
        {
          role: Type.Optional(RoleName),
          email: Type.Optional(Email),
          enabled: Type.Optional(Type.Boolean()),
          protocols: Type.Optional(Protocols),
          cameras: Type.Optional(Cameras),
          password: Type.Optional(Password),
          must_change_password: Type.Optional(Type.Boolean()),
          locked: Type.Optional(Type.Literal(false, { description: 'false: unlock' })),
          two_factor: Type.Optional(Type.Literal(false, { description: 'false: remove the second factor' })),
        },
        { ...closed, minProperties: 1 },
      ),
      response: Changed,
      errors: ['NOT_FOUND', 'CONFLICT', 'SERVICE_UNAVAILABLE'],
      handler: async ({ params, body, caller, address }) => {
        const { role, ...rest } = body
        const change = role === undefined ? rest : { ...rest, role: roleOf(role) }
        return { success: true, ...view(await auth.accounts.change(requester(caller, address), params.id, change)) }
      },
    }),
    route({
      method: 'DELETE',
      path: '/api/users/{id}',
      access: 'admin',
      rate: 'api',
      tag: 'Users',
      summary: 'Delete an account; all that it has opened ends',
      params: Name,
      response: Success,
      errors: ['NOT_FOUND', 'CONFLICT'],
      handler: ({ params, caller, address }) => {
        auth.accounts.remove(requester(caller, address), params.id)
        return { success: true }
      },
    }),
    route({
      method: 'GET',
      path: '/api/users/{name}/permissions',
      access: 'guest',
      rate: 'api',
      tag: 'Users',
      summary: 'What an account may do: the own one, or any for admins',
      params: Type.Object({ name: Type.String({ minLength: 1, maxLength: 64 }) }),
      response: Type.Object({
        username: Type.String(),
        role: Enum(ROLES),
        cameras: Cameras,
        permissions: Type.Array(Enum(PERMISSION_NAMES as string[]), {
          description: '`Media_*` and `Storage_*` are those of the state keys, the others name groups of endpoints',
        }),
      }),
      errors: ['NOT_FOUND'],
      handler: ({ params, caller }) => {
        if (caller?.username !== params.name && caller?.role !== 'admin') throw new PermissionDenied('admin')
        const { username, role, cameras } = auth.accounts.existing(params.name)
        return { username, role, cameras, permissions: ROLE_RIGHTS[role] }
      },
    }),
  ]
}

export function requester(caller: Caller | null, address: string): Requester {
  const { username, sessionId } = required(caller)
  return { username, address, sessionId }
}

function roleOf(name: (typeof ROLE_NAMES)[number]): Role {
  return name === 'Administrator' ? 'admin' : (name.toLowerCase() as Role)
}

function viewOf(user: UserRecord, locked: boolean) {
  const { username, role, email, enabled, protocols, cameras, two_factor, must_change_password, created_at } = user
  const twoFactor = two_factor?.enabled ?? false
  return { username, role, email, enabled, protocols, cameras, two_factor: twoFactor, must_change_password, created_at, locked }
}
