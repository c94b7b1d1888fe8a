/**
 * Back to the state of delivery. Only the wish is written here: the device carries it out at its next start, before anything is mounted, so that
 * no power cut can leave it half done.
 */
import type { Auth } from '../auth/index.ts'
import type { Bus } from '../bus.ts'
import { AgentBroken, agentRefusal, type SystemAgent } from '../platform/index.ts'
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
    const waited = carryOver.present
    if (preserveUsers) carryOver.write()
    try {
      await this.agent.ask(['factory-reset', keep.length === 0 ? '-' : keep.join(',')])
    } catch (error) {
      // Where the answer is missing the wish may be written, and an earlier one may be still. The next boot removes what no reset has wanted.
      if (!waited && !(error instanceof AgentBroken)) carryOver.remove()
      throw agentRefusal(error)
    }
    // Those of an earlier wish must not come back.
    if (!preserveUsers) carryOver.remove()
  }
}
