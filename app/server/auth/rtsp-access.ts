/** Keeps the helper's tables of RTSP users and locks the same as ours, and counts the failures that it sees. */
import { backoff } from '../backoff.ts'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import { HelperDown, type MediaSupervisor, type Methods, type RtspCredentials } from '../media/index.ts'
import type { Auth } from './auth.ts'
import type { RtspUser } from './users.ts'

/** Timers take no more than 2^31 ms. */
const MAX_TIMER_MS = 86_400_000
const FIRST_RETRY_MS = 1000
const LAST_RETRY_MS = 60_000

export class RtspAccess implements Component {
  private expiry: NodeJS.Timeout | undefined
  private unlock: NodeJS.Timeout | undefined
  /** What was not taken yet, by what it is; something newer takes its place. */
  private readonly retries = new Map<string, { failures: number; timer?: NodeJS.Timeout }>()
  /** The clock has stepped, too: what ends at a time may have ended. */
  private readonly onUp = () => {
    void this.push()
    void this.pushLocks()
  }
  private readonly onLockout = () => void this.pushLocks()
  private readonly onUsers = () => void this.push()
  private readonly onUserChanged = ({ username }: { username: string }) => {
    // Both at once: who connects with the new rights must not be caught by the old ones' end.
    void this.push()
    void this.kick(username)
  }
  private readonly onFailure = ({ user, address }: { user: string | null; address: string }) =>
    this.auth.rtspFailed(user, address)

  constructor(
    private readonly auth: Auth,
    private readonly media: MediaSupervisor,
    private readonly bus: Bus,
    private readonly log: Logger,
  ) {}

  /** Starts before the helper: its first `up` needs the users too. */
  start(): void {
    this.media.on('up', this.onUp).on('rtsp.auth_failed', this.onFailure)
    this.bus.on('users-changed', this.onUsers).on('user-changed', this.onUserChanged).on('lockout-changed', this.onLockout)
    this.bus.on('clock-stepped', this.onUp)
  }

  stop(): void {
    clearTimeout(this.expiry)
    clearTimeout(this.unlock)
    for (const { timer } of this.retries.values()) clearTimeout(timer)
    this.retries.clear()
    this.media.off('up', this.onUp).off('rtsp.auth_failed', this.onFailure)
    this.bus.off('users-changed', this.onUsers).off('user-changed', this.onUserChanged).off('lockout-changed', this.onLockout)
    this.bus.off('clock-stepped', this.onUp)
  }

  private push(): Promise<void> {
    this.watchExpiry()
    return this.deliver('rtsp.set_users', { users: this.auth.rtspUsers().map(credentialsOf) }, () => this.push())
  }

  /** The helper turns away what is locked, and hears again when the first lock ends. */
  private pushLocks(): Promise<void> {
    clearTimeout(this.unlock)
    const { users, addresses, until } = this.auth.lockout.locked()
    if (until !== null)
      this.unlock = setTimeout(() => void this.pushLocks(), Math.min(Math.max(until - Date.now() + 1, 1), MAX_TIMER_MS))
    return this.deliver('rtsp.set_lockout', { users, addresses }, () => this.pushLocks())
  }

  /** A share link that expires must close what it has opened. */
  private watchExpiry(): void {
    clearTimeout(this.expiry)
    const next = this.auth.shares.nextExpiry()
    if (next === null) return
    this.expiry = setTimeout(
      () => {
        try {
          this.auth.shares.removeExpired()
        } catch (error) {
          // They open nothing any more, whether they are there or not.
          this.log.warn({ error: errorText(error) }, 'expired share links cannot be removed')
        }
        void this.push()
      },
      Math.min(Math.max(next - Date.now() + 1, 1), MAX_TIMER_MS),
    )
  }

  /** The helper closes what a changed secret opened; a changed role or camera list it cannot see. */
  private kick(username: string): Promise<void> {
    return this.deliver('rtsp.kick', { user: username }, () => this.kick(username), username)
  }

  private async deliver<M extends keyof Methods>(
    method: M,
    params: Methods[M]['params'],
    again: () => Promise<void>,
    of = '',
  ): Promise<void> {
    const key = `${method} ${of}`
    const delivery = { failures: this.retries.get(key)?.failures ?? 0 }
    clearTimeout(this.retries.get(key)?.timer)
    this.retries.set(key, delivery)
    try {
      await this.media.call(method, params)
      if (this.retries.get(key) === delivery) this.retries.delete(key)
    } catch (error) {
      this.log.warn({ method, error: errorText(error) }, 'the media helper did not take a change of RTSP access')
      if (this.retries.get(key) !== delivery) return
      // A helper that is gone gets the tables when it is back.
      if (error instanceof HelperDown) this.retries.delete(key)
      else this.retryLater(key, delivery.failures + 1, again)
    }
  }

  private retryLater(key: string, failures: number, again: () => Promise<void>): void {
    const timer = setTimeout(() => void again(), backoff(failures, FIRST_RETRY_MS, LAST_RETRY_MS))
    this.retries.set(key, { failures, timer })
  }
}

function credentialsOf({ name, ha1_md5, ha1_sha256, cameras }: RtspUser): RtspCredentials {
  // Accounts from before the SHA-256 secret get it at their next login.
  return { name, ha1_md5, ...(ha1_sha256 === null ? {} : { ha1_sha256 }), cameras }
}
