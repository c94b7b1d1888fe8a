/**
 * The file of a backup: a head in plain text, a checksum over everything, and the content, which is encrypted with a passphrase where it
 * holds secrets.
 */

import { createCipheriv, createDecipheriv, createHash, randomBytes, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { ApiError, InvalidRequest } from '../errors.ts'

export const FORMAT = 'camera-server-settings'
export const SCHEMA_VERSION = 1

const derive = promisify<string, Buffer, number, { N: number; r: number; p: number; maxmem: number }, Buffer>(scrypt)
/** About 60 ms and 32 MiB each. */
const COST = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 ** 2 }
const KEY_BYTES = 32

const Base64 = Type.String({ pattern: '^[A-Za-z0-9+/]*={0,2}$' })
const closed = { additionalProperties: false }
const Encrypted = Type.Object(
  { cipher: Type.Literal('scrypt-aes-256-gcm'), salt: Base64, iv: Base64, tag: Base64, data: Base64 },
  closed,
)
const Document = Type.Object(
  {
    format: Type.Literal(FORMAT),
    schema_version: Type.Integer({ minimum: 1 }),
    server_version: Type.String({ maxLength: 64 }),
    created: Type.String({ maxLength: 64 }),
    includes_secrets: Type.Boolean(),
    content: Type.Object({}, { additionalProperties: true }),
    checksum: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  },
  closed,
)

export interface Head {
  readonly format: typeof FORMAT
  readonly schema_version: number
  readonly server_version: string
  /** ISO 8601. */
  readonly created: string
  readonly includes_secrets: boolean
}

export interface BackupDocument extends Head {
  readonly content: Readonly<Record<string, unknown>>
  readonly checksum: string
}

export async function writeDocument(
  head: Omit<Head, 'format' | 'schema_version'>,
  content: Readonly<Record<string, unknown>>,
  passphrase: string | null,
): Promise<BackupDocument> {
  const whole = { format: FORMAT, schema_version: SCHEMA_VERSION, ...head } as const
  const inside = passphrase === null ? content : await encrypt(JSON.stringify(content), passphrase)
  return { ...whole, content: inside, checksum: checksumOf(whole, inside) }
}

/** A document that is whole and of a version that this release reads. */
export function readDocument(value: unknown): BackupDocument {
  const format = typeof value === 'object' && value !== null ? (value as { format?: unknown }).format : undefined
  if (format !== FORMAT) throw new ApiError('INVALID_FORMAT', 'This is no backup of settings', 'format')
  const version = (value as { schema_version?: unknown }).schema_version
  if (typeof version === 'number' && version > SCHEMA_VERSION) {
    const why = `The backup has schema version ${version}; this release reads ${SCHEMA_VERSION} at most`
    throw new ApiError('INVALID_FORMAT', why, 'schema_version')
  }
  if (!Value.Check(Document, value)) {
    const error = Value.Errors(Document, value).First()
    throw new InvalidRequest(`backup${(error?.path ?? '').replaceAll('/', '.')}`, error?.message ?? 'Invalid')
  }
  const { content, checksum, ...head } = value as BackupDocument
  if (checksumOf(head, content) !== checksum) {
    throw new ApiError('INVALID_FORMAT', 'The backup is damaged: its checksum does not match', 'checksum')
  }
  return value as BackupDocument
}

/** The content; a wrong passphrase is an `INVALID_REQUEST`. */
export async function openContent(
  { content, includes_secrets }: BackupDocument,
  passphrase: string | undefined,
): Promise<Readonly<Record<string, unknown>>> {
  if (!includes_secrets) return content
  if (passphrase === undefined) throw new InvalidRequest('body.passphrase', 'This backup holds secrets: its passphrase is needed')
  if (!Value.Check(Encrypted, content)) throw new InvalidRequest('backup.content', 'The content is not encrypted as expected')
  const { salt, iv, tag, data } = content
  const key = await derive(passphrase, Buffer.from(salt, 'base64'), KEY_BYTES, COST)
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(iv, 'base64'), { authTagLength: 16 })
    decipher.setAuthTag(Buffer.from(tag, 'base64'))
    const text = Buffer.concat([decipher.update(Buffer.from(data, 'base64')), decipher.final()]).toString('utf8')
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    throw new InvalidRequest('body.passphrase', 'The passphrase does not open this backup')
  }
}

async function encrypt(text: string, passphrase: string): Promise<Record<string, unknown>> {
  const salt = randomBytes(16)
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', await derive(passphrase, salt, KEY_BYTES, COST), iv)
  const data = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  const base64 = (bytes: Buffer) => bytes.toString('base64')
  return {
    cipher: 'scrypt-aes-256-gcm',
    salt: base64(salt),
    iv: base64(iv),
    tag: base64(cipher.getAuthTag()),
    data: base64(data),
  }
}

function checksumOf(head: Head, content: unknown): string {
  const { format, schema_version, server_version, created, includes_secrets } = head
  const text = JSON.stringify([format, schema_version, server_version, created, includes_secrets, content])
  return createHash('sha256').update(text).digest('hex')
}
