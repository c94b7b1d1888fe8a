/** Where updates come from, and what is let in. The token of hawkBit goes into a file for the system service and is never shown again. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { errorText, InvalidRequest, UnsupportedSetting } from '../errors.ts'
import type { Logger } from '../log.ts'
import { AgentFailure, agentRefusal, type SystemAgent, writeFileAtomic } from '../platform/index.ts'
import type { Store } from '../store/index.ts'
import { httpUrl } from './address.ts'

const closed = { additionalProperties: false }
const Hawkbit = Type.Object(
  {
    enabled: Type.Boolean({ description: 'the device asks a hawkBit server for its updates' }),
    server: Type.String({ pattern: '^([A-Za-z0-9.-]{1,200}(:\\d{1,5})?)?$', description: 'host or host:port; always over TLS' }),
    tenant: Type.String({ pattern: '^[A-Za-z0-9._-]{1,64}$' }),
    target: Type.String({ pattern: '^[A-Za-z0-9._:-]{0,64}$', description: 'the name of this device there' }),
    auth: Type.Union([Type.Literal('target'), Type.Literal('gateway')], { description: 'whose token it is' }),
  },
  closed,
)
export const UpdateSettings = Type.Object(
  {
    index_url: Type.Union([Type.String({ maxLength: 2048 }), Type.Null()], {
      description: 'HTTP or HTTPS; null: no index is asked',
    }),
    allow_downgrade: Type.Boolean({
      description: 'lets in releases that are older than the one that runs, or cannot be compared',
    }),
    hawkbit: Hawkbit,
  },
  closed,
)
export type UpdateSettings = Static<typeof UpdateSettings>

const DEFAULTS: UpdateSettings = {
  index_url: null,
  allow_downgrade: false,
  hawkbit: { enabled: false, server: '', tenant: 'DEFAULT', target: '', auth: 'target' },
}
const KEY = 'updates'
export const MAX_TOKEN = 256

export type UpdateChange = Partial<Omit<UpdateSettings, 'hawkbit'>> & {
  readonly hawkbit?: Partial<UpdateSettings['hawkbit']> & { readonly token?: string }
}

export class Settings implements Component {
  private readonly ending = new AbortController()
  /** One change after the other: what the system service has and what the store says belong together. */
  private turn: Promise<unknown> = Promise.resolve()

  constructor(
    private readonly store: Store,
    private readonly agent: SystemAgent,
    private readonly bus: Bus,
    private readonly tokenFile: string,
    private readonly log: Logger,
  ) {}

  /** A database put back, or a power cut between the two, may have left the system service with something else than the store says. */
  start(): void {
    if (this.agent.available) void this.inTurn(() => this.tellAgain())
  }

  async stop(): Promise<void> {
    this.ending.abort(new Error('the server is ending'))
    await this.turn
  }

  get(): UpdateSettings {
    const stored = this.store.table<string, unknown>('settings').get(KEY)
    return Value.Check(UpdateSettings, stored) ? stored : DEFAULTS
  }

  get tokenSet(): boolean {
    return existsSync(this.tokenFile)
  }

  /** What is not named returns to its default, but the token stays. Acts at once; where the system refuses, nothing has changed. */
  replace(change: UpdateChange): Promise<UpdateSettings> {
    return this.inTurn(() => this.apply(change))
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.turn.then(work)
    this.turn = done.catch(() => undefined)
    return done
  }

  private async tellAgain(): Promise<void> {
    try {
      await this.tellHawkbit(this.get().hawkbit)
    } catch (error) {
      // Without the client there is nothing that could be on.
      const without = error instanceof AgentFailure && error.code === 'UNSUPPORTED' && !this.get().hawkbit.enabled
      if (without || this.ending.signal.aborted) return
      this.log.warn({ error: errorText(error) }, 'the settings of hawkBit may not be in force')
    }
  }

  private async tellHawkbit({ enabled, server, tenant, target, auth }: UpdateSettings['hawkbit']): Promise<void> {
    const words = enabled ? ['on', server, tenant, target, auth] : ['off']
    await this.agent.ask(['hawkbit', ...words], { signal: this.ending.signal })
  }

  private async apply(change: UpdateChange): Promise<UpdateSettings> {
    this.agent.require('updates')
    const before = this.get()
    const { token, ...hawkbit } = change.hawkbit ?? {}
    const next: UpdateSettings = { ...DEFAULTS, ...change, hawkbit: { ...DEFAULTS.hawkbit, ...hawkbit } }
    this.check(next, token)
    if (token !== undefined || !isDeepStrictEqual(next.hawkbit, before.hawkbit)) await this.applyHawkbit(before, next, token)
    this.store.transaction(() => this.store.table<string, unknown>('settings').put(KEY, next))
    const { index_url, allow_downgrade } = next
    this.bus.publish('config', 'updates_config_changed', { index_url, allow_downgrade, hawkbit: next.hawkbit.enabled })
    return next
  }

  private check({ index_url, hawkbit }: UpdateSettings, token: string | undefined): void {
    if (index_url !== null && httpUrl(index_url) === null)
      throw new InvalidRequest('body.index_url', 'Expected the address of an HTTP or HTTPS server, without a password')
    if (token !== undefined && !/^[A-Za-z0-9._~+/=-]+$/.test(token))
      throw new InvalidRequest('body.hawkbit.token', 'Expected letters, digits and . _ ~ + / = -')
    if (!hawkbit.enabled) return
    for (const name of ['server', 'target'] as const)
      if (hawkbit[name] === '') throw new InvalidRequest(`body.hawkbit.${name}`, 'hawkBit needs this')
    if (token === undefined && !this.tokenSet) throw new InvalidRequest('body.hawkbit.token', 'hawkBit needs a token')
  }

  private async applyHawkbit(before: UpdateSettings, { hawkbit }: UpdateSettings, token: string | undefined): Promise<void> {
    const oldToken = this.tokenSet ? readFileSync(this.tokenFile) : null
    if (token !== undefined) writeFileAtomic(this.tokenFile, `${token}\n`, 0o600)
    try {
      if (hawkbit.enabled || before.hawkbit.enabled) await this.tellHawkbit(hawkbit)
    } catch (error) {
      if (oldToken) writeFileAtomic(this.tokenFile, oldToken, 0o600)
      else rmSync(this.tokenFile, { force: true })
      if (error instanceof AgentFailure && error.code === 'UNSUPPORTED')
        throw new UnsupportedSetting('body.hawkbit.enabled', error.message)
      throw agentRefusal(error)
    }
  }
}
