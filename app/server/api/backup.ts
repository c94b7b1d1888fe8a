/** Backups of the settings, for admins. Secrets go into them only encrypted with a passphrase that the admin gives. */
import { Type } from '@sinclair/typebox'
import { BACKUP_NAME, type Backups, MAX_BACKUP_BYTES } from '../backup/index.ts'
import type { Cameras } from '../cameras/index.ts'
import { InvalidRequest, UnsupportedSetting } from '../errors.ts'
import { FileReply, type Route, route } from '../http/index.ts'
import { closed, Success } from './schemas.ts'
import { requester } from './users.ts'

const BackupName = Type.String({ pattern: BACKUP_NAME, description: 'letters, digits, dots, - and _, at most 64' })
const Name = Type.Object({ name: BackupName })
const Passphrase = Type.String({ minLength: 8, maxLength: 256, format: 'password', description: 'encrypts what is secret' })
const Backup = Type.Object({
  name: Type.String(),
  size: Type.Integer({ description: 'bytes' }),
  created: Type.String(),
  includes_secrets: Type.Boolean(),
  server_version: Type.String(),
  path: Type.String({ description: 'where to download it' }),
})
const PATH = '/api/system/backup/config'

export function backupRoutes(backups: Backups, cameras: Cameras): Route[] {
  const shown = <B extends { name: string }>(backup: B) => ({ ...backup, path: `${PATH}/${backup.name}` })
  return [
    route({
      method: 'POST',
      path: PATH,
      access: 'admin',
      rate: 'api',
      tag: 'Backup',
      summary: 'Back up all settings: configuration, state keys, cameras, tag categories, accounts',
      description:
        'Without secrets the accounts are listed without their passwords. With `include_secrets` the file also holds password hashes and the ' +
        'secrets of Digest, RTSP and two-factor logins, and its content is encrypted with `passphrase` (scrypt, AES-256-GCM).',
      body: Type.Object(
        {
          backup_name: Type.Optional(BackupName),
          include_logs: Type.Optional(Type.Boolean({ description: 'this device keeps no log: true is refused' })),
          include_secrets: Type.Optional(Type.Boolean()),
          passphrase: Type.Optional(Passphrase),
        },
        closed,
      ),
      bodyOptional: true,
      response: Type.Intersect([Success, Backup]),
      errors: ['CONFLICT', 'UNSUPPORTED_SETTING', 'INSUFFICIENT_STORAGE', 'PAYLOAD_TOO_LARGE'],
      handler: async ({ body }) => {
        const { backup_name, include_logs, include_secrets = false, passphrase } = body
        if (include_logs) throw new UnsupportedSetting('body.include_logs', 'This device keeps no log of its own')
        if (include_secrets && passphrase === undefined)
          throw new InvalidRequest('body.passphrase', 'Secrets are kept encrypted only: a passphrase is needed')
        if (!include_secrets && passphrase !== undefined)
          throw new InvalidRequest('body.passphrase', 'Only a backup with include_secrets is encrypted')
        return { success: true, ...shown(await backups.create({ name: backup_name, passphrase: passphrase ?? null })) }
      },
    }),
    route({
      method: 'GET',
      path: PATH,
      access: 'admin',
      rate: 'api',
      tag: 'Backup',
      summary: 'The backups on this device, newest first',
      response: Type.Object({ backups: Type.Array(Backup), total: Type.Integer() }),
      handler: async () => {
        const all = (await backups.list()).map(shown)
        return { backups: all, total: all.length }
      },
    }),
    route({
      method: 'GET',
      path: `${PATH}/{name}`,
      access: 'admin',
      rate: 'file',
      tag: 'Backup',
      summary: 'Download a backup',
      params: Name,
      response: { binary: 'application/json', file: true },
      errors: ['NOT_FOUND'],
      handler: ({ params }) => {
        const filename = `${params.name}.json`
        return new FileReply(backups.file(params.name), 'application/json', { filename, attachment: true })
      },
    }),
    route({
      method: 'PUT',
      path: `${PATH}/{name}`,
      access: 'admin',
      rate: 'api',
      tag: 'Backup',
      summary: 'Put a downloaded backup onto this device, to restore it',
      description: 'The body is the file. It is checked and kept; nothing changes before it is restored.',
      params: Name,
      body: Type.Object({}, { additionalProperties: true, description: 'as it was downloaded' }),
      bodyBytes: MAX_BACKUP_BYTES,
      response: Type.Intersect([Success, Backup]),
      errors: ['CONFLICT', 'INVALID_FORMAT', 'INSUFFICIENT_STORAGE', 'PAYLOAD_TOO_LARGE'],
      handler: ({ params, body }) => ({ success: true, ...shown(backups.import(params.name, body)) }),
    }),
    route({
      method: 'DELETE',
      path: `${PATH}/{name}`,
      access: 'admin',
      rate: 'api',
      tag: 'Backup',
      summary: 'Remove a backup',
      params: Name,
      response: Success,
      errors: ['NOT_FOUND'],
      handler: ({ params }) => {
        backups.remove(params.name)
        return { success: true }
      },
    }),
    route({
      method: 'POST',
      path: '/api/system/restore/config',
      access: 'admin',
      rate: 'api',
      tag: 'Backup',
      summary: 'Restore a backup: all of it or nothing',
      description:
        'Everything is checked before anything changes. What is restored acts at once. Accounts and tag categories that the backup does not ' +
        'know stay; accounts that are new here need a backup with secrets, or are skipped, and so are cameras that this device does not have. ' +
        'Refused during a recording, and where no admin would remain.',
      body: Type.Object(
        {
          backup_name: BackupName,
          passphrase: Type.Optional(Passphrase),
          dry_run: Type.Optional(Type.Boolean({ description: 'only say what would change' })),
          restart_services: Type.Optional(
            Type.Boolean({ description: 'restart the capture of all cameras behind it, which nothing needs' }),
          ),
        },
        closed,
      ),
      response: Type.Object({
        success: Type.Boolean(),
        dry_run: Type.Boolean(),
        changes: Type.Array(Type.String({ examples: ['storage.retention_days'] })),
        skipped: Type.Array(Type.String()),
      }),
      errors: ['NOT_FOUND', 'CONFLICT', 'INVALID_FORMAT', 'RECORDING_IN_PROGRESS', 'UNSUPPORTED_SETTING', 'INVALID_RESOLUTION'],
      handler: async ({ body, caller, address }) => {
        const { backup_name, passphrase, dry_run = false, restart_services = false } = body
        const report = await backups.restore({
          name: backup_name,
          passphrase,
          dryRun: dry_run,
          by: requester(caller, address),
          last: restart_services ? () => cameras.restartAll() : undefined,
        })
        return { success: true, dry_run, ...report }
      },
    }),
  ]
}
