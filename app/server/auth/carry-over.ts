/**
 * The accounts over a factory reset: a file that holds them as they are stored, with the key that seals their secrets. It is taken in at the next
 * first start, when there are no accounts, and then removed.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { ROLES } from '../caller.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import { writeFileAtomic } from '../platform/index.ts'
import { MAX_USERS, SHARE_PREFIX, USERNAME } from './accounts.ts'
import { PROTOCOLS, type UserRecord } from './users.ts'

const FORMAT = 'camera-server-accounts'
const KEY_BYTES = 32
const closed = { additionalProperties: false }
const Text = Type.String({ maxLength: 1024 })
const Account = Type.Object(
  {
    username: Type.String({ pattern: USERNAME.source }),
    role: Type.Union(ROLES.map((role) => Type.Literal(role))),
    email: Text,
    enabled: Type.Boolean(),
    password_hash: Text,
    previous_hashes: Type.Array(Text, { maxItems: 32 }),
    must_change_password: Type.Boolean(),
    protocols: Type.Array(Type.Union(PROTOCOLS.map((name) => Type.Literal(name))), { maxItems: 8 }),
    cameras: Type.Union([Type.Array(Type.Integer(), { maxItems: 256 }), Type.Null()]),
    sealed_ha1: Type.Union([Type.Object({ md5: Text, sha256: Type.Union([Text, Type.Null()]) }, closed), Type.Null()]),
    two_factor: Type.Union([
      Type.Object(
        { sealed_secret: Text, enabled: Type.Boolean(), last_step: Type.Integer(), recovery: Type.Array(Text, { maxItems: 32 }) },
        closed,
      ),
      Type.Null(),
    ]),
    created_at: Text,
    updated_at: Text,
  },
  closed,
)
const File = Type.Object(
  {
    format: Type.Literal(FORMAT),
    schema_version: Type.Literal(1),
    seal_key: Type.String({ pattern: '^[A-Za-z0-9+/]{43}=$' }),
    users: Type.Array(Account, { minItems: 1, maxItems: MAX_USERS }),
  },
  closed,
)

export interface Carried {
  readonly sealKey: Buffer
  readonly users: readonly UserRecord[]
}

export class CarryOver {
  constructor(
    private readonly file: string,
    private readonly log: Logger,
  ) {}

  write({ sealKey, users }: Carried): void {
    const content = { format: FORMAT, schema_version: 1, seal_key: sealKey.toString('base64'), users }
    mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 })
    writeFileAtomic(this.file, `${JSON.stringify(content)}\n`, 0o600)
  }

  /** Null where there is none that could be used: a device that nobody could enter would be worse than the factory account. */
  read(): Carried | null {
    if (!existsSync(this.file)) return null
    try {
      const content = JSON.parse(readFileSync(this.file, 'utf8')) as unknown
      if (!Value.Check(File, content)) throw new Error(Value.Errors(File, content).First()?.path ?? 'it is malformed')
      const users: readonly Static<typeof Account>[] = content.users
      const names = new Set(users.map(({ username }) => username.toLowerCase()))
      if (names.size < users.length || users.some(({ username }) => username.startsWith(SHARE_PREFIX)))
        throw new Error('names that cannot be')
      if (!users.some(({ role, enabled }) => role === 'admin' && enabled)) throw new Error('there is no admin in it')
      return { sealKey: Buffer.from(content.seal_key, 'base64').subarray(0, KEY_BYTES), users }
    } catch (error) {
      this.log.error({ error: errorText(error) }, 'the accounts of before the factory reset cannot be read')
      return null
    }
  }

  remove(): void {
    rmSync(this.file, { force: true })
  }
}
