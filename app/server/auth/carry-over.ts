/**
 * The accounts over a factory reset: a file that holds them as they are stored, with the key that seals their secrets. It is taken in at the next
 * first start, when there are no accounts, and then removed. A reset comes with the next boot, before the server: beside accounts of a later boot
 * the file is a leftover, and goes.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { ROLES } from '../caller.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import { writeFileAtomic } from '../platform/index.ts'
import type { Store } from '../store/index.ts'
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
    /** The one that the reset was asked for in. */
    boot_id: Text,
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
    /** Of this boot. */
    private readonly bootId: string,
    private readonly log: Logger,
  ) {}

  /** At the start, before the accounts are read; they are in the table `users`. */
  takeIn(store: Store, sealKeyFile: string): void {
    const table = store.table<string, UserRecord>('users')
    if (table.count() > 0) {
      if (this.present && this.writtenIn() !== this.bootId) this.remove()
      return
    }
    const carried = this.read()
    if (carried) {
      // The key goes first: an end in between begins anew, as there are no accounts yet. Without accounts nothing is sealed with one that is here.
      mkdirSync(dirname(sealKeyFile), { recursive: true, mode: 0o700 })
      writeFileAtomic(sealKeyFile, carried.sealKey, 0o600)
      store.transaction(() => {
        for (const user of carried.users) table.put(user.username, user)
      })
      this.log.info({ accounts: carried.users.length }, 'accounts kept over the factory reset')
    }
    this.remove()
  }

  get present(): boolean {
    return existsSync(this.file)
  }

  /** The accounts have changed: what was taken away since the reset was asked for must not come back with it. */
  renew(carried: () => Carried): void {
    if (!this.present) return
    try {
      this.write(carried())
    } catch (error) {
      this.log.error({ error: errorText(error) }, 'the accounts for after the factory reset are not up to date')
    }
  }

  write({ sealKey, users }: Carried): void {
    const content = { format: FORMAT, schema_version: 1, boot_id: this.bootId, seal_key: sealKey.toString('base64'), users }
    mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 })
    writeFileAtomic(this.file, `${JSON.stringify(content)}\n`, 0o600)
  }

  /** Null where there is none that could be used: a device that nobody could enter would be worse than the factory account. */
  private read(): Carried | null {
    if (!this.present) return null
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

  /** Null where nobody can say. */
  private writtenIn(): unknown {
    try {
      return (JSON.parse(readFileSync(this.file, 'utf8')) as { boot_id?: unknown } | null)?.boot_id
    } catch {
      return null
    }
  }

  remove(): void {
    rmSync(this.file, { force: true })
  }
}
