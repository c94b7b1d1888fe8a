/**
 * Back to the state of delivery. Only the wish is written here: the device carries it out at its next start, before anything is mounted, so that
 * no power cut can leave it half done. A wish whose restart does not come is withdrawn: weeks later, a power cut would carry it out.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { actingAsDevice } from '../actor.ts'
import type { Auth } from '../auth/index.ts'
import { backoff } from '../backoff.ts'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import { agentRefusal, type SystemAgent } from '../platform/index.ts'
import type { Restart } from './restart.ts'

/** A card that is busy recording takes its time until something lies on it for certain. */
const WRITE_MS = 60_000
const FIRST_RETRY_MS = 2000
const LAST_RETRY_MS = 300_000

export interface ResetOptions {
  readonly preserveNetwork: boolean
  readonly preserveUsers: boolean
}

export interface ResetParts {
  readonly agent: SystemAgent
  readonly auth: Auth
  readonly restart: Restart
  /** Throws CONFLICT while it is not certain which release would carry it out. */
  readonly requireSettled: () => Promise<void>
  readonly bus: Bus
  readonly log: Logger
}

export class FactoryReset implements Component {
  private readonly ending = new AbortController()

  constructor(private readonly parts: ResetParts) {}

  /** A server that ended before the restart may have left a wish. Whether its client heard a yes, nobody can tell: so nothing is lost. */
  start(): void {
    if (this.parts.agent.available) void this.withdraw('The server was started anew before the device restarted')
  }

  stop(): void {
    this.ending.abort(new Error('the server is ending'))
  }

  /** Resolves when the device will do it; it restarts right after. */
  async request({ preserveNetwork, preserveUsers }: ResetOptions): Promise<void> {
    const { agent, restart, requireSettled, bus } = this.parts
    agent.require('factory-reset')
    restart.check()
    const unblock = restart.block('A factory reset is being asked for')
    try {
      await requireSettled()
      await this.ask(preserveNetwork, preserveUsers)
    } finally {
      unblock()
    }
    bus.publish('config', 'factory_reset_requested', { preserve_network: preserveNetwork, preserve_users: preserveUsers })
    restart.soon('factory reset', () => void this.withdrawArmed('The device does not restart'))
  }

  private async ask(preserveNetwork: boolean, preserveUsers: boolean): Promise<void> {
    const { agent, auth } = this.parts
    const keep = [...(preserveNetwork ? ['network'] : []), ...(preserveUsers ? ['users'] : [])]
    if (preserveUsers) auth.carryOver.write()
    // Those of an earlier time must not come back.
    else auth.carryOver.remove()
    try {
      await agent.ask(['factory-reset', keep.length === 0 ? '-' : keep.join(',')], { timeoutMs: WRITE_MS })
    } catch (error) {
      // Refused, or without an answer: it may be written all the same.
      await this.withdrawArmed('The request for it has failed')
      throw agentRefusal(error)
    }
  }

  private async withdrawArmed(why: string): Promise<void> {
    if (await this.withdraw(why)) return
    this.parts.bus.publish('alert', 'factory_reset_not_withdrawn', { why })
  }

  /** Nothing restarts the device until that is done. Resolves after the first attempt: whether it was. */
  private async withdraw(why: string): Promise<boolean> {
    const unblock = this.parts.restart.block('A factory reset is being withdrawn')
    const done = await this.tryToWithdraw(why)
    if (done) unblock()
    else void actingAsDevice(() => this.insist(why)).finally(unblock)
    return done
  }

  private async insist(why: string): Promise<void> {
    const { signal } = this.ending
    for (let failures = 1; !signal.aborted; failures++) {
      await delay(backoff(failures, FIRST_RETRY_MS, LAST_RETRY_MS), undefined, { signal }).catch(() => undefined)
      if (!signal.aborted && (await this.tryToWithdraw(why))) return
    }
  }

  private async tryToWithdraw(why: string): Promise<boolean> {
    const { agent, auth, bus, log } = this.parts
    const { signal } = this.ending
    try {
      const withdrawn = await agent.ask(['factory-reset', 'off'], { signal, timeoutMs: WRITE_MS })
      auth.carryOver.remove()
      if (withdrawn.length > 0) {
        log.warn({ why }, 'a factory reset is withdrawn')
        bus.publish('alert', 'factory_reset_withdrawn', { why })
      }
      return true
    } catch (error) {
      if (!signal.aborted) log.error({ error: errorText(error) }, 'a factory reset cannot be withdrawn')
      return false
    }
  }
}
