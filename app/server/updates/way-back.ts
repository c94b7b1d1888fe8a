/** The way to another release that is on the device already: back to the one in the other slot, or away from one that waits for its restart. */
import type { Bus } from '../bus.ts'
import { Conflict, errorText, UnsupportedSetting } from '../errors.ts'
import type { Logger } from '../log.ts'
import { AgentBroken, agentRefusal, type SystemAgent } from '../platform/index.ts'
import type { Restart } from '../reset/index.ts'
import type { Pending, Slots } from './slots.ts'

export interface WayBackParts {
  readonly agent: SystemAgent
  readonly restart: Restart
  readonly bus: Bus
  readonly log: Logger
}

/** It writes some files, each to the end: a card that is being recorded to takes its time. */
const ACTIVATE_MS = 60_000

/** `version` is the one that runs. */
export interface Present extends Slots {
  readonly version: string
}

/** What the device starts from now on. */
export interface Chosen {
  readonly slot: string
  readonly version: string
  readonly restarting: boolean
}

export class WayBack {
  constructor(
    private readonly parts: WayBackParts,
    private readonly look: () => Promise<Present>,
  ) {}

  /** Makes the other slot the one that is started, and restarts; while it waits to be started anyway, that is called off instead. */
  async take(targetVersion: string | undefined, preserveData: boolean): Promise<Chosen> {
    const { restart } = this.parts
    if (!preserveData) throw new UnsupportedSetting('body.preserve_data', 'A rollback removes no data; a factory reset does')
    restart.check()
    const unblock = restart.block('The device goes back to its other release')
    try {
      const present = await this.look()
      if (present.pending?.state === 'waits_for_restart') return await this.callOff(present, present.pending, targetVersion)
      return await this.goBack(present, targetVersion)
    } finally {
      unblock()
    }
  }

  private async goBack({ booted, slots }: Present, targetVersion: string | undefined): Promise<Chosen> {
    const other = slots.find(({ state }) => state === 'inactive')
    if (!other || other.version === null) throw new Conflict('There is no other release on this device', 'slots')
    if (other.boot_status !== 'good')
      throw new Conflict(`The release ${other.version} is not fit to be started`, `slot ${other.name}`)
    if (targetVersion !== undefined && targetVersion !== other.version)
      throw new Conflict(`The other release on this device is ${other.version}`, 'body.target_version')
    const [slot, version] = [other.name, other.version]
    await this.activate(slot, booted)
    this.parts.bus.publish('config', 'update_rolled_back', { slot, version })
    this.parts.restart.soon('rollback')
    return { slot, version, restarting: true }
  }

  private async callOff({ booted, version }: Present, waiting: Pending, targetVersion: string | undefined): Promise<Chosen> {
    if (booted === null) throw new Conflict('It is not known which slot runs', 'slots')
    if (targetVersion !== undefined && targetVersion !== version)
      throw new Conflict(
        `A release waits for its restart; it can be called off for ${version}, which runs`,
        'body.target_version',
      )
    await this.activate(booted, null)
    this.parts.bus.publish('config', 'update_called_off', { slot: waiting.slot, version: waiting.version })
    return { slot: booted, version, restarting: false }
  }

  /** Where the answer is missing, it may come to pass all the same: then it is `instead` that is started, not at some power cut an older release. */
  private async activate(slot: string, instead: string | null): Promise<void> {
    const { agent, log } = this.parts
    const ask = (name: string) => agent.ask(['activate', name], { timeoutMs: ACTIVATE_MS })
    try {
      await ask(slot)
    } catch (error) {
      if (error instanceof AgentBroken && instead !== null)
        await ask(instead).catch((failure: unknown) =>
          log.error({ error: errorText(failure), slot }, 'a rollback may come with the next start'),
        )
      throw agentRefusal(error)
    }
  }
}
