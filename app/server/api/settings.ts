/** The state keys over HTTP: what the WebSocket reads and sets, with the same rights, ranges and order. */
import { Type } from '@sinclair/typebox'
import { InvalidRequest, NotFound } from '../errors.ts'
import { type Route, route } from '../http/index.ts'
import { type State, stateKeys } from '../state/index.ts'
import { required } from './access.ts'
import { documented } from './schemas.ts'

const KEYS = stateKeys()
const Values = documented(
  Type.Object(Object.fromEntries(Object.entries(KEYS).map(([name, schema]) => [name, Type.Optional(schema)])), {
    description: 'values by key; `cam1-light` and `light0` are null where the board has no such light',
  }),
)
const Value = Type.Unknown({ description: 'the bare JSON value of the key: `42`, `"timelapse"`, `true`, `{…}`' })
const Name = Type.Object({ name: Type.String({ maxLength: 64, examples: ['brightness'] }) })
const Permissions = Type.Array(Type.String(), { description: 'one of these is needed' })

const ERRORS = [
  'NOT_FOUND',
  'RECORDING_IN_PROGRESS',
  'INVALID_RESOLUTION',
  'UNSUPPORTED_SETTING',
  'INSUFFICIENT_STORAGE',
  'CAMERA_NOT_CONNECTED',
] as const

export function settingsRoutes(state: State): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/settings',
      access: 'viewer',
      rate: 'api',
      tag: 'Settings',
      summary: 'All state keys that the caller may read',
      response: Values,
      handler: ({ caller }) => state.readAll(required(caller)),
    }),
    route({
      method: 'GET',
      path: '/api/settings/schema',
      access: 'viewer',
      rate: 'api',
      tag: 'Settings',
      summary: 'What each key takes (JSON Schema), its default, which permissions it needs, and whether the caller may set it',
      response: Type.Record(
        Type.String(),
        Type.Object({
          schema: Type.Object({}, { additionalProperties: true }),
          read: Permissions,
          write: Permissions,
          writable: Type.Boolean(),
          default: Type.Optional(Type.Unknown()),
        }),
      ),
      handler: ({ caller }) => {
        const user = required(caller)
        const keys = [...state.describe(user)].map(([name, key]) => [name, { ...key, writable: state.mayWrite(name, user) }])
        return Object.fromEntries(keys)
      },
    }),
    route({
      method: 'POST',
      path: '/api/settings',
      access: 'operator',
      rate: 'api',
      tag: 'Settings',
      summary: 'Set state keys as one batch',
      description:
        'Checked whole before any of it acts, as a message on the WebSocket. The answer holds the keys that were sent, as they are now.',
      body: Values,
      response: Values,
      errors: ERRORS,
      handler: async ({ body, caller }) => {
        if (typeof body !== 'object' || body === null || Array.isArray(body))
          throw new InvalidRequest('body', 'Expected an object')
        const user = required(caller)
        await state.write(body as Record<string, unknown>, user)
        return state.read(Object.keys(body), user)
      },
    }),
    route({
      method: 'GET',
      path: '/api/settings/{name}',
      access: 'viewer',
      rate: 'api',
      tag: 'Settings',
      summary: 'One state key: the answer is its bare value',
      params: Name,
      response: Value,
      errors: ['NOT_FOUND'],
      handler: ({ params, caller }) => currentValue(state, params.name, required(caller)),
    }),
    route({
      method: 'POST',
      path: '/api/settings/{name}',
      access: 'operator',
      rate: 'api',
      tag: 'Settings',
      summary: 'Set one state key: the body and the answer are its bare value',
      params: Name,
      body: Value,
      response: Value,
      errors: ERRORS,
      handler: async ({ params, body, caller }) => {
        const user = required(caller)
        if (!state.has(params.name)) throw new NotFound(`setting ${params.name}`)
        await state.write({ [params.name]: body }, user)
        return currentValue(state, params.name, user)
      },
    }),
  ]
}

function currentValue(state: State, name: string, user: Parameters<State['read']>[1]): unknown {
  if (!state.has(name)) throw new NotFound(`setting ${name}`)
  return state.read([name], user)[name]
}
