/**
 * The configuration in force. A change is checked whole, then acts, then is stored together with its entry in the history; where acting
 * fails, what had acted is taken back and nothing is stored. Changes happen one after the other, so that none is lost.
 */
import { isDeepStrictEqual } from 'node:util'
import { currentActor } from '../actor.ts'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { ApiError, Conflict, errorText, StartupError } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { Store, Table } from '../store/index.ts'
import { type ConfigChange, ConfigHistory, type NewChange } from './history.ts'
import {
  CONFIG_VERSION,
  checkSection,
  defaultsOf,
  fitSection,
  type PartialSections,
  SECTION_NAMES,
  type Section,
  type SectionValues,
} from './sections.ts'

/** A part of the server that a section acts on. */
export interface Applier<S extends Section> {
  /** Throws an `ApiError` for what this device cannot do. Nothing has changed yet. */
  check?(next: SectionValues[S], before: SectionValues[S]): void
  /** Makes `next` act; when it rejects, the change does not happen. Called with both swapped to take it back. */
  apply?(next: SectionValues[S], before: SectionValues[S]): Promise<void> | void
}

/** Runs what a guard has let pass, and keeps what the guard refuses for from beginning meanwhile. */
export type Hold = <T>(change: () => Promise<T>) => Promise<T>

interface Stored {
  readonly version: number
  readonly value: unknown
}

interface Step {
  readonly section: Section
  readonly before: SectionValues[Section]
  readonly next: SectionValues[Section]
}

export class Configuration implements Component {
  private readonly values = new Map<Section, SectionValues[Section]>()
  private readonly defaults = new Map<Section, SectionValues[Section]>()
  private readonly appliers = new Map<Section, Applier<Section>[]>()
  private readonly guards: { readonly check: () => void; readonly hold: Hold }[] = []
  private turn: Promise<unknown> = Promise.resolve()
  private opened: { readonly table: Table<Section, Stored>; readonly history: ConfigHistory } | undefined

  constructor(
    private readonly store: Store,
    private readonly bus: Bus,
    private readonly log: Logger,
    /** What the options say: the defaults here instead of those of the schemas. */
    private readonly given: PartialSections = {},
    private readonly now: () => Date = () => new Date(),
  ) {}

  start(): void {
    this.opened = { table: this.store.table('config'), history: new ConfigHistory(this.store) }
    for (const section of SECTION_NAMES) {
      const defaults = this.checkGiven(section)
      const { value, dropped } = fitSection(section, this.parts.table.get(section)?.value, defaults)
      if (dropped.length > 0) this.log.warn({ section, fields: dropped }, 'stored fields do not fit and take their defaults')
      this.defaults.set(section, frozen(defaults))
      this.values.set(section, frozen(value))
    }
  }

  /** What is being changed is finished first. */
  async stop(): Promise<void> {
    await this.turn
    this.opened = undefined
  }

  /** The section in force. */
  get<S extends Section>(section: S): SectionValues[S] {
    const value = this.values.get(section)
    if (!value) throw new Error('the configuration is not started')
    return value as SectionValues[S]
  }

  all(): SectionValues {
    return Object.fromEntries(SECTION_NAMES.map((section) => [section, this.get(section)])) as unknown as SectionValues
  }

  /** Whoever a section acts on says here what it can take, and takes it. */
  use<S extends Section>(section: S, applier: Applier<S>): void {
    this.appliers.set(section, [...(this.appliers.get(section) ?? []), applier as unknown as Applier<Section>])
  }

  /** `check` throws while nothing may be changed at all. */
  guard(check: () => void, hold: Hold = (change) => change()): void {
    this.guards.push({ check, hold })
  }

  /** Runs `work`, which makes changes that the guards would refuse, with nothing beginning that they refuse for. */
  held<T>(work: () => Promise<T>): Promise<T> {
    for (const { check } of this.guards) check()
    return this.guards.reduce(
      (inner, { hold }) =>
        () =>
          hold(inner),
      work,
    )()
  }

  /** The whole section: fields that are not named return to their defaults. */
  replace<S extends Section>(section: S, fields: unknown): Promise<SectionValues[S]> {
    return this.inTurn(() => this.change(section, { ...this.defaults.get(section), ...asObject(section, fields) }))
  }

  /** Only the fields that are named; lists and objects among them as wholes. */
  merge<S extends Section>(section: S, fields: unknown): Promise<SectionValues[S]> {
    return this.inTurn(() => this.change(section, { ...this.get(section), ...asObject(section, fields) }))
  }

  history(limit: number, offset: number): { changes: ConfigChange[]; total: number } {
    return this.parts.history.list(limit, offset)
  }

  /**
   * Takes back the newest change that stands, of one section or of all; the next time the one before it. `mayChange` throws where the caller
   * may not change the section that this comes to.
   */
  undo(section: Section | undefined, mayChange: (section: Section) => void): Promise<ConfigChange> {
    return this.inTurn(async () => {
      const last = this.parts.history.latest(section)
      if (!last) throw new Conflict('There is no change to take back')
      mayChange(last.section)
      const next = fitSection(last.section, last.before, this.get(last.section)).value
      const [entry] = await this.perform([this.step(last.section, next)], last.id)
      if (!entry) throw new Conflict('There is no change to take back')
      return entry
    })
  }

  /** Several sections at once, all or none; `also` writes what belongs to the same transaction. */
  assign(values: Partial<SectionValues>, also: () => void = () => {}): Promise<void> {
    return this.inTurn(async () => {
      const sections = SECTION_NAMES.filter((section) => values[section] !== undefined)
      await this.perform(
        sections.map((section) => this.step(section, values[section])),
        null,
        also,
      )
    })
  }

  /** What `assign` would refuse, without changing anything. */
  checkAll(values: Partial<SectionValues>): void {
    for (const { check } of this.guards) check()
    for (const section of SECTION_NAMES) {
      if (values[section] !== undefined) this.check(this.step(section, values[section]))
    }
  }

  private get parts() {
    if (!this.opened) throw new Error('the configuration is not started')
    return this.opened
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.turn.then(work)
    this.turn = turn.catch(() => undefined)
    return turn
  }

  private async change<S extends Section>(section: S, value: unknown): Promise<SectionValues[S]> {
    await this.perform([this.step(section, value)], null)
    return this.get(section)
  }

  private step(section: Section, value: unknown): Step {
    return { section, before: this.get(section), next: frozen(checkSection(section, value, `body.${section}`)) }
  }

  private check({ section, next, before }: Step): void {
    for (const applier of this.appliers.get(section) ?? []) applier.check?.(next, before)
  }

  /** Returns the entries of the history; sections that stay as they are have none, unless an undo must be noted. */
  private async perform(asked: readonly Step[], undoes: number | null, also?: () => void): Promise<ConfigChange[]> {
    const steps = asked.filter(({ before, next }) => undoes !== null || !isDeepStrictEqual(before, next))
    if (steps.length === 0 && !also) return []
    return this.held(() => this.act(steps, undoes, also))
  }

  private async act(steps: readonly Step[], undoes: number | null, also?: () => void): Promise<ConfigChange[]> {
    for (const step of steps) this.check(step)
    const acted: (() => Promise<void> | void)[] = []
    try {
      for (const { section, before, next } of steps) {
        for (const applier of this.appliers.get(section) ?? []) {
          acted.unshift(() => applier.apply?.(before, next))
          await applier.apply?.(next, before)
        }
      }
      const entries = this.save(steps, undoes, also)
      for (const step of steps) this.announce(step)
      return entries
    } catch (error) {
      for (const takeBack of acted) await this.attempt(takeBack)
      throw error
    }
  }

  private save(steps: readonly Step[], undoes: number | null, also?: () => void): ConfigChange[] {
    const { table, history } = this.parts
    const actor = currentActor()
    const who = { timestamp: this.now().toISOString(), username: actor?.username ?? null, address: actor?.address ?? null }
    const entries = this.store.transaction(() => {
      also?.()
      return steps.map(({ section, before, next }) => {
        // Back at the defaults, it follows the options again.
        if (isDeepStrictEqual(next, this.defaults.get(section))) table.remove(section)
        else table.put(section, { version: CONFIG_VERSION, value: next })
        return history.add({ section, ...who, before, after: next, undoes } as NewChange)
      })
    })
    for (const { section, next } of steps) this.values.set(section, next)
    return entries
  }

  private announce({ section, before, next }: Step): void {
    const fields = Object.keys(next).filter((key) => !isDeepStrictEqual(next[key as never], before[key as never]))
    this.log.info({ section, fields }, 'configuration changed')
    try {
      this.bus.emit('config-changed', { section, value: next, previous: before } as never)
      this.bus.publish('config', 'section_changed', { section, fields })
    } catch (error) {
      // It is in force and stored: a listener that fails must not make it look refused.
      this.log.error({ section, error: errorText(error) }, 'a listener failed after a change')
    }
  }

  private async attempt(takeBack: () => Promise<void> | void): Promise<void> {
    try {
      await takeBack()
    } catch (error) {
      this.log.error({ error: errorText(error) }, 'a change that failed could not be taken back whole')
    }
  }

  private checkGiven<S extends Section>(section: S): SectionValues[S] {
    try {
      return checkSection(section, { ...defaultsOf(section), ...this.given[section] })
    } catch (error) {
      if (error instanceof ApiError) throw new StartupError(`the option behind ${error.details}: ${error.message}`)
      throw error
    }
  }
}

function asObject(section: Section, fields: unknown): object {
  if (typeof fields === 'object' && fields !== null && !Array.isArray(fields)) return fields
  // Reports what it was instead.
  return checkSection(section, fields, `body.${section}`)
}

function frozen<T>(value: T): T {
  const copy = structuredClone(value)
  freeze(copy)
  return copy
}

function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  Object.values(value).forEach(freeze)
  Object.freeze(value)
}
