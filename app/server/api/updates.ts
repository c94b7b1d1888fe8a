/** Updates of the whole system, for admins. On the firmware image they act; elsewhere they answer UNSUPPORTED_SETTING. */
import { Type } from '@sinclair/typebox'
import { InvalidRequest } from '../errors.ts'
import { type FormBody, type Route, route } from '../http/index.ts'
import {
  type Incoming,
  MAX_BUNDLE_BYTES,
  MAX_TOKEN,
  PENDING_STATES,
  UpdateSettings,
  type Updates,
  type UpdatesConfiguration,
} from '../updates/index.ts'
import { JobStarted, jobStarted } from './jobs.ts'
import { closed, Enum, Nullable, Success } from './schemas.ts'

const PATH = '/api/system/updates'
const Version = Type.String({ minLength: 1, maxLength: 64 })
const Text = Nullable(Type.String())

const Current = Type.Object({
  version: Type.String(),
  compatible: Type.String({ description: 'the devices that this release is for' }),
  build: Text,
  board: Text,
  channel: Text,
  slot: Text,
})
const Offer = Type.Object({
  id: Type.String({ description: 'the `update_id` of an installation' }),
  source: Enum(['index', 'upload', 'media']),
  version: Text,
  compatible: Text,
  size_bytes: Type.Integer(),
  build: Text,
  released: Text,
  notes: Text,
  valid: Nullable(
    Type.Boolean({ description: 'whether this device trusts its signature; null: not here yet, nobody has looked' }),
  ),
  installable: Type.Boolean(),
  newer: Type.Boolean({ description: 'installable, and newer than what runs' }),
  reason: Nullable(Type.String({ description: 'what speaks against it' })),
})
const Slot = Type.Object({
  name: Type.String({ description: 'A or B' }),
  state: Enum(['booted', 'inactive']),
  boot_status: Enum(['good', 'bad']),
  version: Text,
  installed: Text,
  tries_left: Nullable(Type.Integer({ description: 'before the boot loader falls back' })),
})
const Failure = Type.Object({
  slot: Type.String(),
  version: Text,
  installed: Text,
  detected: Text,
  attempts: Nullable(Type.Integer()),
  stage: Nullable(Enum(['loader', 'kernel', 'userspace', 'server'], 'how far it came')),
  reason: Text,
  log: Type.Array(Type.String(), { description: 'the last lines of its journal' }),
})
const { token_set, ...shownHawkbit } = {
  ...UpdateSettings.properties.hawkbit.properties,
  token_set: Type.Boolean({ description: 'the token itself is never shown' }),
}
const Shown = Type.Object({ ...UpdateSettings.properties, hawkbit: Type.Object({ ...shownHawkbit, token_set }) })
const Change = Type.Object(
  {
    index_url: Type.Optional(UpdateSettings.properties.index_url),
    allow_downgrade: Type.Optional(UpdateSettings.properties.allow_downgrade),
    hawkbit: Type.Optional(
      Type.Object(
        {
          ...Type.Partial(UpdateSettings.properties.hawkbit).properties,
          token: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: MAX_TOKEN,
              format: 'password',
              description: 'stays as it is where it is not sent',
            }),
          ),
        },
        closed,
      ),
    ),
  },
  closed,
)
const Restarting = Type.Boolean({ description: 'the device restarts a moment after this answer' })

export function updatesRoutes(updates: Updates, configuration: UpdatesConfiguration): Route[] {
  const shared = { access: 'admin', rate: 'api', tag: 'Updates' } as const
  const shown = () => {
    const { hawkbit, ...settings } = configuration.get()
    return { ...settings, hawkbit: { ...hawkbit, token_set: configuration.tokenSet } }
  }
  return [
    route({
      ...shared,
      method: 'GET',
      path: `${PATH}/check`,
      summary: 'What runs, and what could be installed: from the index, uploaded, or on mounted media',
      description:
        'The index is the JSON file at `index_url`: `{"updates": [{"id", "version", "compatible", "url", "sha256", "size_bytes", "notes", ' +
        '"released"}]}`; `url` may be relative, `notes` and `released` may be absent. Where it cannot be had, `index.error` says why.',
      response: Type.Object({
        current: Current,
        update_available: Type.Boolean(),
        updates: Type.Array(Offer),
        index: Nullable(
          Type.Object({ url: Type.String(), error: Text, ignored: Type.Integer({ description: 'malformed entries, left out' }) }),
        ),
      }),
      errors: ['UNSUPPORTED_SETTING', 'SERVICE_UNAVAILABLE'],
      handler: ({ signal }) => updates.check(signal),
    }),
    route({
      ...shared,
      method: 'POST',
      path: `${PATH}/install`,
      summary: 'Install an update into the other slot',
      description:
        'A job, kind `update_install`. Everything is checked before anything is written: the device that it is for, its signature, its version ' +
        '(an older one, or one that cannot be compared, only with `allow_downgrade`), the space, the battery. Recordings go on beside it. ' +
        '`restart_after: true` restarts the device when it is done, also during a recording, which is ended properly; else the new release ' +
        'waits for the next restart. It must then show itself healthy, or the device falls back to the release before; no other update is let ' +
        'in until then. Cancelling the job is too late once the system is being written: the update is installed then, but nothing restarts.',
      body: Type.Object(
        {
          update_id: Type.String({ minLength: 1, maxLength: 512 }),
          backup_config: Type.Optional(Type.Boolean({ description: 'back up the settings first' })),
          restart_after: Type.Optional(Type.Boolean({ default: false })),
        },
        closed,
      ),
      response: JobStarted,
      errors: ['NOT_FOUND', 'CONFLICT', 'INVALID_FORMAT', 'INSUFFICIENT_STORAGE', 'UNSUPPORTED_SETTING', 'SERVICE_UNAVAILABLE'],
      handler: async ({ body, signal }) => {
        const { update_id: updateId, backup_config: backupConfig = false, restart_after: restartAfter = false } = body
        return jobStarted(await updates.install({ updateId, backupConfig, restartAfter }, signal))
      },
    }),
    route({
      ...shared,
      method: 'POST',
      path: `${PATH}/rollback`,
      summary: 'Go back to the release in the other slot, or call an update off that waits for its restart',
      description:
        'The device answers and then restarts, also during a recording, which is ended properly. Files and recordings are kept (`preserve_data: false` ' +
        'is refused, a factory reset is what removes them). Where the release that runs has changed the schema of the database, the other one goes on ' +
        'with the copy from before that: settings, tags and accounts as they were then; changes since are lost, and the accounts and passwords of ' +
        'then are valid again. The other release has a trial as an update has: where it does not show itself healthy, the device comes back. While a release waits for a restart (`pending` of the status), that is called off instead: the answer names what runs, ' +
        'with `restarting: false`, and nothing restarts.',
      body: Type.Object(
        {
          target_version: Type.Optional(Version),
          preserve_data: Type.Optional(Type.Boolean({ default: true })),
        },
        closed,
      ),
      bodyOptional: true,
      response: Type.Intersect([Success, Type.Object({ slot: Type.String(), version: Version, restarting: Restarting })]),
      errors: ['CONFLICT', 'UNSUPPORTED_SETTING', 'SERVICE_UNAVAILABLE'],
      handler: async ({ body }) => {
        return { success: true, ...(await updates.rollback(body.target_version, body.preserve_data ?? true)) }
      },
    }),
    route({
      ...shared,
      method: 'GET',
      path: `${PATH}/status`,
      summary: 'Both slots, what waits for a restart, and the updates that failed',
      response: Type.Object({
        current: Current,
        booted: Text,
        primary: Nullable(Type.String({ description: 'the slot that is started first' })),
        slots: Type.Array(Slot),
        pending: Nullable(
          Type.Object(
            { slot: Type.String(), version: Text, state: Enum(PENDING_STATES, '`on_trial`: it runs, and is not confirmed yet') },
            { description: 'a release that is not confirmed in its slot' },
          ),
        ),
        confirmed: Type.Boolean({ description: 'the running release has shown itself healthy since the server started' }),
        waiting_for: Nullable(Type.String({ description: 'what it has not shown yet' })),
        failures: Type.Array(Failure),
        data_recreated: Nullable(
          Type.String({
            description: 'when the data partition was beyond repair and was made anew, empty (alert `data_recreated`)',
          }),
        ),
      }),
      errors: ['UNSUPPORTED_SETTING', 'SERVICE_UNAVAILABLE'],
      handler: () => updates.status(),
    }),
    route({
      ...shared,
      method: 'DELETE',
      path: `${PATH}/failures`,
      summary: 'Forget the updates that failed',
      response: Success,
      errors: ['UNSUPPORTED_SETTING', 'SERVICE_UNAVAILABLE'],
      handler: async () => {
        await updates.dismissFailures()
        return { success: true }
      },
    }),
    route({
      ...shared,
      method: 'POST',
      path: `${PATH}/upload`,
      rate: 'upload',
      summary: 'Upload a bundle (.raucb), to install it afterwards',
      description:
        'It is there whole or not at all. The last three are kept. One with a bad signature is listed, but cannot be installed.',
      upload: { form: Type.Object({ file: Type.String({ format: 'binary' }) }), maxBytes: () => MAX_BUNDLE_BYTES },
      response: Type.Object({
        success: Type.Boolean(),
        id: Type.String(),
        version: Text,
        compatible: Text,
        size_bytes: Type.Integer(),
        valid: Nullable(Type.Boolean()),
        reason: Text,
      }),
      errors: ['CONFLICT', 'INSUFFICIENT_STORAGE', 'UNSUPPORTED_SETTING', 'PAYLOAD_TOO_LARGE'],
      handler: ({ body }) => receive(updates, body),
    }),
    route({
      ...shared,
      method: 'DELETE',
      path: `${PATH}/upload/{id}`,
      summary: 'Remove a bundle that was uploaded',
      description: 'CONFLICT while it is being installed. Bundles on media stay as they are.',
      params: Type.Object({ id: Type.String({ maxLength: 512, examples: ['upload:camera-1.3.0.raucb'] }) }),
      response: Success,
      errors: ['NOT_FOUND', 'CONFLICT', 'UNSUPPORTED_SETTING'],
      handler: async ({ params }) => {
        await updates.remove(params.id)
        return { success: true }
      },
    }),
    route({
      ...shared,
      method: 'GET',
      path: `${PATH}/config`,
      summary: 'Where updates come from',
      response: Shown,
      handler: shown,
    }),
    route({
      ...shared,
      method: 'PUT',
      path: `${PATH}/config`,
      summary: 'Set where updates come from; what is not sent returns to its default',
      description: 'A hawkBit server is asked only by images that have the client for it; the others refuse it.',
      body: Change,
      response: Shown,
      errors: ['UNSUPPORTED_SETTING', 'SERVICE_UNAVAILABLE'],
      handler: async ({ body }) => {
        await configuration.replace(body)
        return shown()
      },
    }),
  ]
}

async function receive(updates: Updates, form: FormBody) {
  let incoming: Incoming | undefined
  try {
    for await (const event of form.events()) {
      if (event.kind === 'data') await incoming?.write(event.bytes)
      else if (event.kind === 'field' || event.name !== 'file')
        throw new InvalidRequest(`body.${event.name}`, 'The bundle must come as a file in the part named file')
      else incoming = await updates.receive(event.filename, form.announced)
    }
    if (!incoming) throw new InvalidRequest('body.file', 'The form has no file')
    const { id, version, compatible, size_bytes, valid, problem } = await updates.finish(incoming)
    return { success: true, id, version, compatible, size_bytes, valid, reason: problem }
  } finally {
    await incoming?.end()
  }
}
