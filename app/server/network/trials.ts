/**
 * Changes of the network that must prove themselves. A change acts shortly after its answer has gone out, and the system service takes it back
 * after a minute by itself, whatever has become of this server, unless the client confirms it over the new address. This class knows what is on
 * trial, decides whether a confirmation proves anything, and tells what became of each change.
 */
import { isDeepStrictEqual } from 'node:util'
import { actingAsDevice } from '../actor.ts'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { Conflict, errorText, NotFound } from '../errors.ts'
import type { Logger } from '../log.ts'
import {
  AgentBroken,
  type ConfiguredNetwork,
  type NetworkInterface,
  type NetworkReader,
  type SystemAgent,
} from '../platform/index.ts'
import { nextPhase, type TrialEvent, type TrialPhase } from './machine.ts'
import { type InterfaceRequest, type Plan, planFor, requestWords } from './plan.ts'
import { confirmationProves } from './proof.ts'
import { CONFIRM_WITHIN_SECONDS, SystemTrials, trialRefusal } from './system-trials.ts'

/** The answer has long left when the address goes. */
const ANSWER_MS = 300
/** How often the system service is asked for the end of a trial that is due. */
const OVERDUE_CHECK_MS = 1000
const OVERDUE_CHECKS = 10

interface Trial {
  readonly interface: string
  readonly plan: Plan
  /** The fixed addresses that the change has taken away. */
  readonly lost: readonly string[]
  phase: TrialPhase
  /** On the steady clock, in milliseconds; null until the change is in force. */
  endsAt: number | null
  /** The system service was asked to keep it and did not answer. */
  mayBeKept: boolean
  overdue: number
  timer: NodeJS.Timeout | undefined
}

type End = readonly [type: string, data: Record<string, unknown>]

const UNTIMED = { endsAt: null, mayBeKept: false, overdue: 0, timer: undefined } as const

export interface TrialOptions {
  /** The ports that clients reach this server through. */
  readonly ports: () => readonly number[]
  readonly answerMs?: number
  readonly overdueCheckMs?: number
}

export class NetworkTrials implements Component {
  private readonly trials = new Map<string, Trial>()
  private action: NodeJS.Timeout | undefined
  private stopped = false
  private readonly system: SystemTrials

  constructor(
    private readonly agent: SystemAgent,
    private readonly reader: NetworkReader,
    private readonly bus: Bus,
    private readonly log: Logger,
    private readonly options: TrialOptions,
  ) {
    this.system = new SystemTrials(agent, log)
  }

  /** A trial may have begun before this server. */
  start(): void {
    if (!this.agent.available) return
    this.adopt().catch((error) => this.log.warn({ error: errorText(error) }, 'network trials are not known'))
  }

  stop(): void {
    this.stopped = true
    clearTimeout(this.action)
    for (const { timer } of this.trials.values()) clearTimeout(timer)
  }

  /** When the trial of an interface ends unless it is confirmed, as epoch milliseconds; null where none is under way. */
  endOf(name: string): number | null {
    const endsAt = this.trials.get(name)?.endsAt ?? null
    return endsAt === null ? null : Date.now() + Math.max(0, endsAt - performance.now())
  }

  /** Checks everything and returns; the change follows when the answer has gone out. */
  change(name: string, request: InterfaceRequest): Plan {
    const all = this.reader.interfaces()
    const target = interfaceOf(all, name)
    const plan = planFor(target, request, all)
    this.agent.require('name')
    if (this.trials.has(name))
      throw new Conflict('A change of this interface is on trial: confirm it or take it back first', name)
    if (this.action) throw new Conflict('The network is about to be reset or restarted')
    const { network } = this.reader.link(name)
    const lost = plan.method === 'dhcp' ? network.addresses.map((entry) => entry.split('/')[0] ?? '') : []
    const trial: Trial = { interface: name, plan, lost, phase: 'announced', ...UNTIMED }
    this.trials.set(name, trial)
    this.tell(trial, 'network_changed', { ...described(plan), confirm_within_seconds: CONFIRM_WITHIN_SECONDS })
    trial.timer = setTimeout(() => void this.apply(trial), this.options.answerMs ?? ANSWER_MS)
    return plan
  }

  /** `peer`: the other end of the connection that the confirmation came through. */
  async confirm(name: string, peer: string): Promise<void> {
    const trial = this.current(name)
    const seen = this.reader.tables.localAddresses(peer, this.options.ports())
    const missing = confirmationProves(trial.plan, trial.lost, name, seen, this.reader.interfaces())
    if (missing !== null) throw new Conflict(missing, [...seen].join(', '))
    this.step(trial, 'confirm')
    try {
      await this.agent.ask(['network-keep', name])
    } catch (error) {
      // It may have been too late: then the trial's end is told now. Or it is only slow: then it may be kept all the same.
      trial.mayBeKept ||= error instanceof AgentBroken
      this.step(trial, 'failed')
      this.lookAfter(trial, 0)
      throw trialRefusal(error)
    }
    this.step(trial, 'done')
    this.tell(trial, 'network_confirmed', described(trial.plan))
  }

  /** Takes a change back now; one that has only been announced never acts. */
  async revert(name: string): Promise<void> {
    const trial = this.current(name, ['announced', 'trial'])
    clearTimeout(trial.timer)
    const acts = trial.phase === 'trial'
    this.step(trial, 'end')
    if (acts) {
      try {
        await this.agent.ask(['network-revert', name])
      } catch (error) {
        this.step(trial, 'failed')
        this.lookAfter(trial, 0)
        throw trialRefusal(error)
      }
      this.step(trial, 'done')
    }
    this.tell(trial, 'network_reverted', { reason: 'asked' })
  }

  /** Every interface back to DHCP; what is on trial goes as well. */
  reset(): void {
    this.actSoon('reset', () => {
      for (const trial of this.trials.values()) {
        clearTimeout(trial.timer)
        this.tell(trial, 'network_reverted', { reason: 'reset' })
      }
      this.trials.clear()
    })
  }

  restart(): void {
    this.actSoon('restart', () => {})
  }

  private actSoon(what: 'reset' | 'restart', done: () => void): void {
    this.agent.require('network')
    if (this.action) throw new Conflict('The network is about to be reset or restarted')
    const busy = [...this.trials.values()].find(({ phase }) => phase !== 'trial')
    if (busy) throw new Conflict('A change of the network is under way', busy.interface)
    this.bus.publish('config', `network_${what}`, {})
    this.action = setTimeout(() => {
      this.agent
        .ask([`network-${what}`])
        .then(done, (error) => {
          this.log.error({ what, error: errorText(error) }, 'the network was not changed')
          this.bus.publish('config', 'network_failed', { action: what, error: errorText(error) })
        })
        .finally(() => {
          this.action = undefined
        })
    }, this.options.answerMs ?? ANSWER_MS)
  }

  private async apply(trial: Trial): Promise<void> {
    this.step(trial, 'apply')
    try {
      await this.agent.ask(['network-set', ...requestWords(trial.interface, trial.plan)])
    } catch (error) {
      this.log.error({ interface: trial.interface, error: errorText(error) }, 'the network was not changed')
      await this.system.undo(trial.interface)
      if (this.stopped) return
      this.step(trial, 'failed')
      this.tell(trial, 'network_reverted', { reason: 'failed', error: errorText(error) })
      return
    }
    const ends = await this.system.endOf(trial.interface)
    if (this.stopped) return
    this.step(trial, 'done')
    this.lookAfter(trial, ends ?? CONFIRM_WITHIN_SECONDS * 1000)
  }

  private async adopt(): Promise<void> {
    const running = await this.system.underWay()
    if (this.stopped) return
    for (const [name, ms] of running) {
      if (this.trials.has(name)) continue
      const plan = planOf(this.reader.link(name).network) ?? { method: 'dhcp' }
      const trial: Trial = { interface: name, plan, lost: [], phase: 'trial', ...UNTIMED }
      this.trials.set(name, trial)
      this.log.info({ interface: name, seconds: Math.round(ms / 1000) }, 'a network change is on trial')
      this.lookAfter(trial, ms)
    }
  }

  /** Its end is nobody's deed but the device's. */
  private lookAfter(trial: Trial, ms: number): void {
    if (this.stopped) return
    trial.endsAt ??= performance.now() + ms
    clearTimeout(trial.timer)
    trial.timer = actingAsDevice(() => setTimeout(() => void this.seeWhetherOver(trial), ms))
  }

  private async seeWhetherOver(trial: Trial): Promise<void> {
    const end = await this.findEnd(trial)
    // A confirmation or a reset came in between.
    if (this.stopped || trial.phase !== 'trial' || this.trials.get(trial.interface) !== trial) return
    if (end !== null) {
      this.step(trial, 'end')
      this.step(trial, 'done')
      this.tell(trial, ...end)
    } else {
      const due = trial.mayBeKept ? 0 : (trial.endsAt ?? 0) - performance.now()
      this.lookAfter(trial, Math.max(due, this.options.overdueCheckMs ?? OVERDUE_CHECK_MS))
    }
  }

  /** The event that tells of it, null before. Asks the system service; one that forgets to take a change back is told to. */
  private async findEnd(trial: Trial): Promise<End | null> {
    const due = performance.now() >= (trial.endsAt ?? 0)
    if (due) trial.overdue += 1
    try {
      const over = !(await this.system.underWay()).has(trial.interface)
      if (!over && trial.overdue < OVERDUE_CHECKS) return null
      if (!over) await this.system.takeBack(trial.interface)
    } catch (error) {
      this.log.error({ interface: trial.interface, error: errorText(error) }, 'the end of a network trial is not known')
      return trial.overdue < OVERDUE_CHECKS ? null : ['network_failed', { action: 'revert', error: errorText(error) }]
    }
    const kept = trial.mayBeKept && isDeepStrictEqual(planOf(this.reader.link(trial.interface).network), trial.plan)
    return kept ? ['network_confirmed', described(trial.plan)] : ['network_reverted', { reason: 'timeout' }]
  }

  private current(name: string, phases: readonly TrialPhase[] = ['trial']): Trial {
    interfaceOf(this.reader.interfaces(), name)
    this.agent.require('name')
    const trial = this.trials.get(name)
    if (!trial) throw new Conflict('No change of this interface is on trial', name)
    if (!phases.includes(trial.phase)) throw new Conflict('The change of this interface is under way: ask again', trial.phase)
    return trial
  }

  private step(trial: Trial, event: TrialEvent): void {
    const next = nextPhase(trial.phase, event)
    if (next === null) throw new Error(`network trial: ${event} cannot follow ${trial.phase}`)
    if (next !== 'over') trial.phase = next
    else {
      clearTimeout(trial.timer)
      if (this.trials.get(trial.interface) === trial) this.trials.delete(trial.interface)
    }
  }

  private tell(trial: Trial, type: string, data: Record<string, unknown>): void {
    this.log.info({ interface: trial.interface, ...data }, type)
    this.bus.publish('config', type, { interface: trial.interface, ...data })
  }
}

function interfaceOf(all: readonly NetworkInterface[], name: string): NetworkInterface {
  const found = all.find((one) => one.name === name)
  if (!found) throw new NotFound(`interface ${name}`)
  return found
}

/** Null where nothing is configured. */
function planOf({ method, addresses, gateways, dns }: ConfiguredNetwork): Plan | null {
  if (method !== 'static') return method && { method }
  const [address = '', prefix = ''] = addresses[0]?.split('/') ?? []
  return { method, address, prefix: Number(prefix), gateway: gateways[0] ?? null, dns }
}

function described(plan: Plan): Record<string, unknown> {
  if (plan.method === 'dhcp') return { method: 'dhcp' }
  const { method, address, prefix, gateway, dns } = plan
  return { method, ip_address: address, prefix, gateway, dns_servers: dns }
}
