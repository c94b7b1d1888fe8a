import { join } from 'node:path'
import pino from 'pino'
import type { Test } from 'tap'
import { Auth } from '../../../app/server/auth/index.ts'
import { PasswordHasher } from '../../../app/server/auth/passwords.ts'
import { Bus } from '../../../app/server/bus.ts'
import type { Caller, CredentialSource } from '../../../app/server/http/index.ts'
import { Store } from '../../../app/server/store/index.ts'
import { scratchFolder } from '../../support/scratch.ts'

export const log = pino({ level: 'silent' })
export const PASSWORD = 'Correct-Horse-9'
export const HERE = '192.0.2.7'
/** bcrypt's least: what is tested here is not its cost. */
export const QUICK_ROUNDS = 4

export async function open(
  t: Test,
  options: { adminPassword?: string | undefined; folder?: string; now?: number; hasher?: PasswordHasher } = {},
) {
  const hasher = options.hasher ?? new PasswordHasher(QUICK_ROUNDS)
  const folder = options.folder ?? scratchFolder(t, 'auth')
  const clock = { now: options.now ?? Date.now() }
  const store = new Store(join(folder, 'db'), log)
  const bus = new Bus()
  const events: { type: string; data: Record<string, unknown> }[] = []
  bus.on('event', ({ type, data }) => events.push({ type, data }))
  const adminPassword = 'adminPassword' in options ? options.adminPassword : PASSWORD
  const auth = new Auth(
    store,
    bus,
    { keyFolder: join(folder, 'keys'), adminPassword, trustedOrigins: () => [], sessionLifetimeMs: () => 3_600_000 },
    log,
    () => clock.now,
    hasher,
  )
  await store.start()
  await auth.start()
  const close = async () => {
    auth.stop()
    await store.stop()
  }
  t.teardown(close)
  const login = (password = PASSWORD, username = 'admin', otp?: string) =>
    auth.login({ username, password, ...(otp === undefined ? {} : { otp }) }, HERE, false)
  const caller = async (given: CredentialSource) => (await auth.authenticate(given)) as Caller
  return { auth, store, bus, events, folder, clock, close, login, caller }
}

export type Opened = Awaited<ReturnType<typeof open>>

export function source(headers: Partial<CredentialSource>): CredentialSource {
  const nothing = { authorization: '', cookie: '', origin: '', token: '' }
  return { method: 'GET', url: '/', host: 'cam:8080', address: HERE, secure: false, ...nothing, ...headers }
}

export function basic(username: string, password: string, more: Partial<CredentialSource> = {}): CredentialSource {
  return source({ authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`, ...more })
}

export const ADMIN = { username: 'admin', address: HERE }
