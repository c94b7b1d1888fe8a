/** Login, logout, and the change of one's own password. */
import { Type } from '@sinclair/typebox'
import type { Auth } from '../auth/index.ts'
import { PermissionDenied } from '../errors.ts'
import { JsonReply, ROLES, type Route, route } from '../http/index.ts'
import { required } from './access.ts'
import { closed, Enum, Page, Success } from './schemas.ts'
import { twoFactorRoutes } from './totp.ts'
import { requester } from './users.ts'

const Password = Type.String({ minLength: 1, maxLength: 256 })
const Username = Type.String({ minLength: 1, maxLength: 64 })

const Otp = Type.String({ minLength: 6, maxLength: 32, description: 'six digits, or a recovery code' })

const Session = Type.Object({
  id: Type.String(),
  username: Type.String(),
  address: Type.String({ description: 'where the login came from' }),
  created_at: Type.String(),
  expires_at: Type.String(),
  current: Type.Boolean({ description: 'the session of this request' }),
})

const LoginResult = Type.Object({
  token: Type.String({ description: 'JWT, for `Authorization: Bearer`' }),
  token_type: Type.Literal('Bearer'),
  expires_at: Type.String(),
  must_change_password: Type.Boolean(),
  user: Type.Object({ username: Type.String(), role: Enum(ROLES) }),
})

export function authRoutes(auth: Auth): Route[] {
  const login = (path: string) =>
    route({
      method: 'POST',
      path,
      access: 'public',
      rate: 'api',
      tag: 'Authentication',
      summary: 'Log in; the answer also sets a session cookie',
      description:
        'An account with a second factor needs `otp`: OTP_REQUIRED (401) tells so. A recovery code is good in its place, once.',
      body: Type.Object({ username: Username, password: Password, otp: Type.Optional(Otp) }, closed),
      response: LoginResult,
      errors: ['INVALID_CREDENTIALS', 'OTP_REQUIRED', 'ACCOUNT_LOCKED', 'SERVICE_UNAVAILABLE'],
      beforePasswordChange: true,
      handler: async ({ body, address, secure }) => {
        const { token, expiresAt, cookie, user } = await auth.login(body, address, secure)
        const { username, role, must_change_password } = user
        const result = { token, token_type: 'Bearer', expires_at: expiresAt, must_change_password, user: { username, role } }
        return new JsonReply(result, { 'Set-Cookie': cookie })
      },
    })

  return [
    login('/api/login'),
    login('/api/auth/login'),
    route({
      method: 'POST',
      path: '/api/auth/logout',
      access: 'guest',
      rate: 'api',
      tag: 'Authentication',
      summary: 'End the session of the token at once',
      response: Success,
      beforePasswordChange: true,
      handler: ({ caller, address, secure }) => {
        auth.logout(requester(caller, address))
        return new JsonReply({ success: true }, { 'Set-Cookie': auth.expiredCookie(secure) })
      },
    }),
    route({
      method: 'GET',
      path: '/api/auth/session',
      access: 'guest',
      rate: 'api',
      tag: 'Authentication',
      summary: 'Who the credentials belong to',
      response: Type.Object({ username: Type.String(), role: Enum(ROLES), must_change_password: Type.Boolean() }),
      beforePasswordChange: true,
      handler: ({ caller }) => ({
        username: caller?.username,
        role: caller?.role,
        must_change_password: caller?.mustChangePassword,
      }),
    }),
    route({
      method: 'GET',
      path: '/api/auth/sessions',
      access: 'guest',
      rate: 'api',
      tag: 'Authentication',
      summary: 'Open sessions: the own ones; for admins those of everybody, or of `username`',
      query: Type.Object({ ...Page, username: Type.Optional(Username) }, closed),
      response: Type.Object({
        sessions: Type.Array(Session),
        total: Type.Integer(),
        limit: Type.Integer(),
        offset: Type.Integer(),
      }),
      handler: ({ query, caller }) => {
        const { username: own, role, sessionId } = required(caller)
        const { limit = 100, offset = 0, username = role === 'admin' ? undefined : own } = query
        if (role !== 'admin' && username !== own) throw new PermissionDenied('admin')
        const all = auth.sessions(username)
        const page = all.slice(offset, offset + limit).map((session) => ({
          ...session,
          created_at: new Date(session.created_at).toISOString(),
          expires_at: new Date(session.expires_at).toISOString(),
          current: session.id === sessionId,
        }))
        return { sessions: page, total: all.length, limit, offset }
      },
    }),
    route({
      method: 'DELETE',
      path: '/api/auth/sessions/{id}',
      access: 'guest',
      rate: 'api',
      tag: 'Authentication',
      summary: 'End a session at once: an own one, or any for admins',
      params: Type.Object({ id: Type.String({ minLength: 1, maxLength: 64 }) }),
      response: Success,
      errors: ['NOT_FOUND'],
      handler: ({ params, caller, address }) => {
        auth.revoke(requester(caller, address), params.id, caller?.role === 'admin')
        return { success: true }
      },
    }),
    ...twoFactorRoutes(auth),
    route({
      method: 'PUT',
      path: '/api/users/{name}/password',
      access: 'guest',
      rate: 'api',
      tag: 'Authentication',
      summary: 'Change the own password; all other sessions of the user end',
      params: Type.Object({ name: Username }),
      body: Type.Object({ current_password: Password, new_password: Password }, closed),
      response: Success,
      errors: ['INVALID_CREDENTIALS', 'ACCOUNT_LOCKED', 'CONFLICT', 'SERVICE_UNAVAILABLE'],
      beforePasswordChange: true,
      handler: async ({ params, body, caller, address }) => {
        if (required(caller).username !== params.name) throw new PermissionDenied('only the owner may change this password here')
        await auth.accounts.changeOwnPassword(requester(caller, address), body.current_password, body.new_password)
        return { success: true }
      },
    }),
  ]
}
