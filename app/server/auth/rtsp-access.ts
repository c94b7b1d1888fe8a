/** Keeps the helper's table of RTSP users the same as ours. */
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { MediaSupervisor } from '../media/index.ts'
import type { Auth } from './auth.ts'

export class RtspAccess implements Component {
  private readonly onChange = () => void this.push()
  private readonly onFailure = ({ user, address }: { user: string | null; address: string }) =>
    this.bus.publish('auth', 'login_failed', { username: user, address, protocol: 'rtsp' })

  constructor(
    private readonly auth: Auth,
    private readonly media: MediaSupervisor,
    private readonly bus: Bus,
    private readonly log: Logger,
  ) {}

  /** Starts before the helper: its first `up` needs the users too. */
  start(): void {
    this.media.on('up', this.onChange).on('rtsp.auth_failed', this.onFailure)
    this.bus.on('users-changed', this.onChange)
  }

  stop(): void {
    this.media.off('up', this.onChange).off('rtsp.auth_failed', this.onFailure)
    this.bus.off('users-changed', this.onChange)
  }

  private async push(): Promise<void> {
    try {
      await this.media.call('rtsp.set_users', { users: this.auth.users.rtspUsers() })
    } catch (error) {
      // A helper that is gone gets the table when it is back.
      this.log.warn({ error: errorText(error) }, 'RTSP users not delivered')
    }
  }
}
