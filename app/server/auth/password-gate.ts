/**
 * The one place where a password is compared: behind the lockout, in the same time whether the account exists or not, and remembered for a
 * moment where every request brings it (Basic).
 */
import { createHmac, randomBytes } from 'node:crypto'
import type { Bus } from '../bus.ts'
import { InvalidCredentials } from '../errors.ts'
import type { Lockout } from './lockout.ts'
import type { PasswordHasher } from './passwords.ts'
import type { UserRecord, Users } from './users.ts'

/** Compared with when the account does not exist. */
const NOBODYS_HASH = '$2y$12$bYkiCvve/Q2.nyC480LrEetiaY1Ljy4btZtk.5lD1n.V83mpCmfH.'
const REMEMBER_MS = 60_000
const REMEMBER_MAX = 1000

export class PasswordGate {
  private readonly key = randomBytes(32)
  /** Digests of pairs that were right a short while ago, oldest first. */
  private readonly verified = new Map<string, { username: string; hash: string; until: number }>()
  /** Requests with the same pair wait for one bcrypt round. */
  private readonly running = new Map<string, Promise<UserRecord>>()

  constructor(
    private readonly users: Users,
    private readonly lockout: Lockout,
    private readonly hasher: PasswordHasher,
    private readonly bus: Bus,
    private readonly now: () => number,
  ) {}

  /** The account; throws when it is locked or the password wrong. The counter of failures is reset by whoever lets the user in. */
  async check(username: string, password: string, address: string): Promise<UserRecord> {
    this.lockout.check(username, address)
    const user = this.users.get(username)
    const right = await this.hasher.verify(password, user?.password_hash ?? NOBODYS_HASH, () =>
      this.lockout.check(username, address),
    )
    // Guesses that ran beside this one may have locked the account meanwhile.
    this.lockout.check(username, address)
    const current = this.users.get(username)
    if (!right || !current?.enabled || current.password_hash !== user?.password_hash) this.fail(username, address)
    if (this.users.completeSecrets(current, password)) this.bus.emit('users-changed')
    return this.users.get(username) ?? current
  }

  /** The same for credentials that come with every request. */
  async checkOften(username: string, password: string, address: string): Promise<UserRecord> {
    this.lockout.check(username, address)
    const key = createHmac('sha256', this.key).update(`${username}\0${password}`).digest('base64')
    const known = this.verified.get(key)
    const left = known ? known.until - this.now() : 0
    // More than it was given: the clock was set back.
    const user = known && left > 0 && left <= REMEMBER_MS ? this.users.get(known.username) : undefined
    if (user?.enabled && user.password_hash === known?.hash) return user
    this.verified.delete(key)
    const waiting = `${key}${address}`
    const running = this.running.get(waiting)
    if (running) return running
    const check = this.check(username, password, address).then((found) => {
      this.remember(key, found)
      return found
    })
    this.running.set(waiting, check)
    try {
      return await check
    } finally {
      this.running.delete(waiting)
    }
  }

  /** Counts and tells a failure, then throws. */
  fail(username: string, address: string, message = 'The username or the password is wrong'): never {
    this.note(username, address)
    throw new InvalidCredentials(message)
  }

  /** A failure that somebody else has answered (RTSP). */
  note(username: string | null, address: string, protocol = 'http'): void {
    const locked = this.lockout.fail(username, address)
    this.bus.publish('auth', 'login_failed', { username, address, protocol })
    if (!locked.account && !locked.address) return
    const target = locked.account ? username : null
    this.bus.publish('auth', 'locked', { username, address, target, address_locked: locked.address })
    this.bus.emit('lockout-changed')
  }

  /** What was remembered of an account whose credentials have changed. */
  forget(username: string): void {
    for (const [key, entry] of this.verified) if (entry.username === username) this.verified.delete(key)
  }

  private remember(key: string, { username, password_hash: hash }: UserRecord): void {
    const oldest = this.verified.size >= REMEMBER_MAX ? this.verified.keys().next() : undefined
    if (oldest && !oldest.done) this.verified.delete(oldest.value)
    this.verified.set(key, { username, hash, until: this.now() + REMEMBER_MS })
  }
}
