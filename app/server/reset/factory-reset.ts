/**
 * Back to the state of delivery. Only the wish is written here: the device carries it out at its next start, before anything is mounted, so that
 * no power cut can leave it half done.
 */
import type { Auth } from '../auth/index.ts'
import type { Bus } from '../bus.ts'
import { agentRefusal, type SystemAgent } from '../platform/index.ts'
import type { Restart } from './restart.ts'

export interface ResetOptions {
  readonly preserveNetwork: boolean
  readonly preserveUsers: boolean
}

export class FactoryReset {
  constructor(
    private readonly agent: SystemAgent,
    private readonly auth: Auth,
    private readonly restart: Restart,
    private readonly bus: Bus,
  ) {}

  /** Resolves when the device will do it; it restarts right after. */
  async request({ preserveNetwork, preserveUsers }: ResetOptions): Promise<void> {
    this.agent.require('factory-reset')
    this.restart.check()
    const unblock = this.restart.block('A factory reset is being asked for')
    try {
      await this.ask(preserveNetwork, preserveUsers)
    } finally {
      unblock()
    }
    this.bus.publish('config', 'factory_reset_requested', { preserve_network: preserveNetwork, preserve_users: preserveUsers })
    this.restart.soon('factory reset')
  }

  private async ask(preserveNetwork: boolean, preserveUsers: boolean): Promise<void> {
    const keep = [...(preserveNetwork ? ['network'] : []), ...(preserveUsers ? ['users'] : [])]
    const { carryOver } = this.auth
    // Also without: an older one must not bring accounts back.
    if (preserveUsers) carryOver.write()
    else carryOver.remove()
    try {
      await this.agent.ask(['factory-reset', keep.length === 0 ? '-' : keep.join(',')])
    } catch (error) {
      carryOver.remove()
      throw agentRefusal(error)
    }
  }
}
