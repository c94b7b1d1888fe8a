/** What ends with a restart of the device: a restart, and the return to the state of delivery. */
import { Type } from '@sinclair/typebox'
import { InvalidRequest } from '../errors.ts'
import { type Route, route } from '../http/index.ts'
import type { FactoryReset } from '../reset/index.ts'
import type { Updates } from '../updates/index.ts'
import { closed, Success } from './schemas.ts'

const Restarting = Type.Intersect([
  Success,
  Type.Object({ restarting: Type.Boolean({ description: 'the device restarts a moment after this answer' }) }),
])

export function factoryResetRoutes(reset: FactoryReset, updates: Updates): Route[] {
  const shared = { method: 'POST', access: 'admin', rate: 'api', tag: 'System' } as const
  return [
    route({
      ...shared,
      path: '/api/system/factory-reset',
      summary: 'Return to the state of delivery: recordings, files and settings go',
      description:
        'The device answers, restarts, and removes everything before it starts again; a power cut delays that and changes nothing. Tag categories ' +
        'always stay. A recording that runs ends. CONFLICT while an update is being installed, waits for its restart or is on trial. A reset ' +
        'that fails, or whose restart does not come, is withdrawn; the alert `factory_reset_withdrawn` tells where it lay ready.',
      body: Type.Object(
        {
          confirm: Type.Optional(Type.Boolean({ description: 'must be true' })),
          preserve_network: Type.Optional(Type.Boolean({ default: false, description: 'keep the addresses of the interfaces' })),
          preserve_users: Type.Optional(Type.Boolean({ default: false, description: 'keep all accounts with their passwords' })),
        },
        closed,
      ),
      response: Restarting,
      errors: ['CONFLICT', 'UNSUPPORTED_SETTING', 'SERVICE_UNAVAILABLE'],
      handler: async ({ body }) => {
        if (body.confirm !== true) throw new InvalidRequest('body.confirm', 'Only with confirm: true, as everything is removed')
        await reset.request({ preserveNetwork: body.preserve_network ?? false, preserveUsers: body.preserve_users ?? false })
        return { success: true, restarting: true }
      },
    }),
    route({
      ...shared,
      path: '/api/system/reboot',
      summary: 'Restart the device',
      description:
        'The answer comes first. Refused during a recording, unless `force` is true; then the recording is ended properly.',
      body: Type.Object({ force: Type.Optional(Type.Boolean({ default: false })) }, closed),
      bodyOptional: true,
      response: Restarting,
      errors: ['CONFLICT', 'RECORDING_IN_PROGRESS', 'UNSUPPORTED_SETTING'],
      handler: ({ body }) => {
        updates.reboot(body.force ?? false)
        return { success: true, restarting: true }
      },
    }),
  ]
}
