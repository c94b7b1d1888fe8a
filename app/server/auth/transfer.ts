/** Accounts in a backup of settings: as they are listed, and with their secrets where the whole file is encrypted. */

import { isDeepStrictEqual } from 'node:util'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Bus } from '../bus.ts'
import { ROLES } from '../caller.ts'
import { Conflict, InvalidRequest } from '../errors.ts'
import { type Accounts, MAX_USERS, type Requester, SHARE_PREFIX, USERNAME } from './accounts.ts'
import { open, seal } from './sealed.ts'
import { sealContext } from './totp.ts'
import { PASSWORD_HISTORY, PROTOCOLS, type UserRecord, type Users } from './users.ts'

const Hash = Type.String({ pattern: '^\\$2[aby]\\$\\d\\d\\$[./A-Za-z0-9]{53}$' })
const Fields = {
  username: Type.String({ pattern: USERNAME.source }),
  role: Type.Union(ROLES.map((role) => Type.Literal(role))),
  email: Type.String({ maxLength: 254 }),
  enabled: Type.Boolean(),
  protocols: Type.Array(Type.Union(PROTOCOLS.map((name) => Type.Literal(name))), { maxItems: 8, uniqueItems: true }),
  cameras: Type.Union([
    Type.Array(Type.Integer({ minimum: 0, maximum: 255 }), { maxItems: 256, uniqueItems: true }),
    Type.Null(),
  ]),
}
const Secrets = Type.Object(
  {
    password_hash: Hash,
    previous_hashes: Type.Array(Hash, { maxItems: PASSWORD_HISTORY }),
    must_change_password: Type.Boolean(),
    ha1: Type.Union([
      Type.Object(
        {
          md5: Type.String({ pattern: '^[0-9a-f]{32}$' }),
          sha256: Type.Union([Type.String({ pattern: '^[0-9a-f]{64}$' }), Type.Null()]),
        },
        { additionalProperties: false },
      ),
      Type.Null(),
    ]),
    two_factor: Type.Union([
      Type.Object(
        {
          secret: Type.String({ pattern: '^[A-Z2-7]{16,128}$' }),
          enabled: Type.Boolean(),
          last_step: Type.Integer({ minimum: 0 }),
          recovery: Type.Array(Type.String({ maxLength: 128 }), { maxItems: 32 }),
        },
        { additionalProperties: false },
      ),
      Type.Null(),
    ]),
  },
  { additionalProperties: false },
)
const Entry = Type.Object({ ...Fields, secrets: Type.Optional(Secrets) }, { additionalProperties: false })
const Entries = Type.Array(Entry, { maxItems: MAX_USERS })
type Entry = Static<typeof Entry>

export class AccountTransfer {
  /** Key in the file. */
  readonly name = 'users'

  constructor(
    private readonly users: Users,
    private readonly accounts: Accounts,
    private readonly sealKey: Buffer,
    private readonly bus: Bus,
  ) {}

  collect(secrets: boolean): Entry[] {
    return this.users.all().map((user) => {
      const { username, role, email, enabled, protocols, cameras } = user
      const fields = {
        username,
        role,
        email,
        enabled,
        protocols: [...protocols],
        cameras: cameras === null ? null : [...cameras],
      }
      return secrets ? { ...fields, secrets: this.secretsOf(user) } : fields
    })
  }

  /** Accounts that the file does not know stay; new ones need their password, which only a file with secrets has. */
  prepare(value: unknown, _secrets: boolean, by: Requester) {
    if (!Value.Check(Entries, value)) {
      const error = Value.Errors(Entries, value).First()
      const field = `backup.content.users${(error?.path ?? '').replaceAll('/', '.')}`
      throw new InvalidRequest(field, error?.message ?? 'Invalid')
    }
    const known = this.users.all()
    const next = new Map(known.map((user) => [user.username, user]))
    const changes: string[] = []
    const skipped: string[] = []
    for (const entry of value) {
      const before = next.get(entry.username)
      const after = this.merged(entry, before)
      if (after === null) skipped.push(`user ${entry.username}: a new account needs a backup with secrets`)
      else if (!before || !same(before, after)) {
        next.set(entry.username, after)
        changes.push(`user ${entry.username}: ${before ? 'changed' : 'created'}`)
      }
    }
    checkNames([...next.keys()])
    if (![...next.values()].some(({ role, enabled }) => role === 'admin' && enabled))
      throw new Conflict('An admin must remain', 'users')
    const changed = [...next.values()].filter((user) => this.users.get(user.username) !== user)
    return {
      changes,
      skipped,
      write: () => {
        if (this.users.all().some((user, i) => user !== known[i]) || this.users.size !== known.length)
          throw new Conflict('The accounts were changed meanwhile', 'users')
        this.users.stage(changed)
      },
      act: () => {
        const before = new Map(changed.map(({ username }) => [username, this.users.get(username)]))
        this.users.reload()
        for (const user of changed) this.accounts.replaced(by, before.get(user.username), user)
        if (changed.length > 0) this.bus.emit('users-changed')
      },
    }
  }

  private secretsOf(user: UserRecord): Static<typeof Secrets> {
    const { username, password_hash, previous_hashes, must_change_password, two_factor } = user
    const md5 = this.users.ha1(user, 'MD5')
    const secret = two_factor === null ? null : open(this.sealKey, two_factor.sealed_secret, sealContext(username))
    return {
      password_hash,
      previous_hashes: [...previous_hashes],
      must_change_password,
      ha1: md5 === null ? null : { md5, sha256: this.users.ha1(user, 'SHA-256') },
      two_factor:
        two_factor === null || secret === null
          ? null
          : { secret, enabled: two_factor.enabled, last_step: two_factor.last_step, recovery: [...two_factor.recovery] },
    }
  }

  private merged({ secrets, ...fields }: Entry, before: UserRecord | undefined): UserRecord | null {
    if (!secrets && !before) return null
    const now = new Date().toISOString()
    const own = secrets ? this.sealed(fields.username, secrets) : (before as UserRecord)
    const merged = { ...own, ...fields, created_at: before?.created_at ?? now, updated_at: now }
    return merged.protocols.length === 0 || merged.must_change_password ? { ...merged, sealed_ha1: null } : merged
  }

  private sealed(username: string, { ha1, two_factor, ...plain }: Static<typeof Secrets>) {
    const sealHa1 = (text: string) => seal(this.sealKey, text, username)
    return {
      ...plain,
      sealed_ha1: ha1 && { md5: sealHa1(ha1.md5), sha256: ha1.sha256 === null ? null : sealHa1(ha1.sha256) },
      two_factor: two_factor && {
        sealed_secret: seal(this.sealKey, two_factor.secret, sealContext(username)),
        enabled: two_factor.enabled,
        last_step: two_factor.last_step,
        recovery: two_factor.recovery,
      },
    }
  }
}

/** But for what is another each time: the seals and the time. */
function same(a: UserRecord, b: UserRecord): boolean {
  const plain = ({ sealed_ha1, two_factor, updated_at: _at, ...rest }: UserRecord) => {
    const factor = two_factor && { ...two_factor, sealed_secret: '' }
    return { ...rest, ha1: sealed_ha1 !== null, factor }
  }
  return isDeepStrictEqual(plain(a), plain(b))
}

function checkNames(names: readonly string[]): void {
  if (names.length > MAX_USERS) throw new Conflict(`There can be ${MAX_USERS} accounts at most`, `limit ${MAX_USERS}`)
  const folded = new Set(names.map((name) => name.toLowerCase()))
  if (folded.size < names.length) throw new Conflict('Two accounts would differ in upper and lower case alone', 'users')
  const reserved = names.find((name) => name.startsWith(SHARE_PREFIX))
  if (reserved !== undefined) throw new InvalidRequest('backup.content.users', `${SHARE_PREFIX} is reserved for share links`)
}
