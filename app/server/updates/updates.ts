/** Updates of the whole system: what runs, what could run, and the way from one to the other. Nothing is written before everything is checked. */
import { rmSync } from 'node:fs'
import type { Backups } from '../backup/index.ts'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { ApiError, Conflict, errorText, NotFound } from '../errors.ts'
import type { Job, JobContext, Jobs } from '../jobs/index.ts'
import type { Logger } from '../log.ts'
import type { Battery, SystemAgent } from '../platform/index.ts'
import type { Restart } from '../reset/index.ts'
import { objectOf, parseJson } from './bundle.ts'
import type { Confirmation } from './confirmation.ts'
import type { DataLoss } from './data-loss.ts'
import type { Failures } from './failures.ts'
import { fetchIndex, type IndexEntry, type ReleaseIndex } from './index-file.ts'
import { NOT_YET_LOOKED_AT, type Rules, refusal } from './judge.ts'
import { download } from './net.ts'
import { offeredByIndex, offeredHere } from './offer.ts'
import type { Settings } from './settings.ts'
import type { Bundle, Incoming, Shelf } from './shelf.ts'
import { interpretSlots, type Pending } from './slots.ts'
import { type Chosen, WayBack } from './way-back.ts'

const INSTALL_MS = 60 * 60_000
const JOB_MS = 3 * INSTALL_MS
/** Of the progress, what a download takes. */
const DOWNLOAD_SHARE = 0.5
const LOW_BATTERY_PERCENT = 20
const SETTLE_FIRST = {
  installing: 'An update is being installed: wait for its end; where it was broken off, restart',
  waits_for_restart: 'An update waits for a restart: restart into it first, or call it off by a rollback',
  on_trial: 'The release that runs is on trial: wait until it is confirmed, or go back by a rollback',
} as const

export interface Parts {
  readonly agent: SystemAgent
  readonly shelf: Shelf
  readonly settings: Settings
  readonly failures: Failures
  readonly dataLoss: DataLoss
  readonly restart: Restart
  readonly jobs: Jobs
  readonly backups: Backups
  readonly bus: Bus
  readonly log: Logger
  readonly battery: () => Battery | null
  readonly anyRecording: () => boolean
}

export interface InstallRequest {
  readonly updateId: string
  readonly backupConfig: boolean
  readonly restartAfter: boolean
}

/** From the index, not here yet; or a file here. */
type Target = { readonly entry: IndexEntry } | { readonly bundle: Bundle }

export class Updates implements Component {
  private readonly ending = new AbortController()
  private confirmation: Confirmation | undefined
  private telling: Promise<void> = Promise.resolve()
  private readonly wayBack: WayBack

  constructor(private readonly parts: Parts) {
    this.wayBack = new WayBack(parts, async () => {
      const { version } = await this.release()
      return { version, ...(await this.slots(version)) }
    })
  }

  async start(): Promise<void> {
    await this.parts.shelf.start()
    if (this.parts.agent.available) this.telling = this.tellWhatFailed()
  }

  async stop(): Promise<void> {
    this.ending.abort(new Error('the server is ending'))
    await this.telling
  }

  /** Whose state the status shows; it begins when the API answers. */
  watch(confirmation: Confirmation): void {
    this.confirmation = confirmation
  }

  /** What the image says of itself. */
  async release() {
    return (await this.info()).release
  }

  private async info(signal?: AbortSignal) {
    const { agent } = this.parts
    agent.require('updates')
    const info = objectOf(parseJson((await agent.askForClient(['info'], signal ? { signal } : {}))[0] ?? ''))
    const text = (name: string): string | null => (typeof info?.[name] === 'string' ? info[name] : null)
    const [version, compatible] = [text('version'), text('compatible')]
    if (version === null || compatible === null)
      throw new ApiError('SERVICE_UNAVAILABLE', 'The system service does not say what runs', 'info')
    const [build, board, channel, slot] = [text('build'), text('board'), text('channel'), text('slot')]
    const release = { version, compatible, build, board, channel, slot }
    return { release, dataRecreated: text('data_recreated'), pending: text('pending') }
  }

  /** All that could be installed, and what speaks against it. */
  async check(signal: AbortSignal) {
    const current = await this.release()
    const rules = this.rules(current)
    const [bundles, index] = await Promise.all([this.parts.shelf.list(), this.index(signal)])
    const updates = [
      ...(index?.entries ?? []).map((entry) => offeredByIndex(entry, rules)),
      ...bundles.map((bundle) => offeredHere(bundle, rules)),
    ]
    const about = index === null ? null : { url: index.url, error: index.error, ignored: index.ignored }
    return { current, update_available: updates.some(({ newer }) => newer), updates, index: about }
  }

  receive(filename: string, announced: number | null): Promise<Incoming> {
    this.parts.agent.require('updates')
    return this.parts.shelf.receive(filename, announced)
  }

  /** The answer is what the list will say of it. */
  async finish(incoming: Incoming): Promise<Bundle> {
    const bundle = await incoming.finish()
    const { id, version, valid, size_bytes } = bundle
    this.parts.bus.publish('config', 'update_uploaded', { id, version, valid, size_bytes })
    return bundle
  }

  async remove(id: string): Promise<void> {
    this.parts.agent.require('updates')
    await this.parts.shelf.remove(id)
    this.parts.bus.publish('config', 'update_removed', { id })
  }

  async install(request: InstallRequest, signal: AbortSignal): Promise<Job> {
    const { agent, restart, shelf, jobs } = this.parts
    agent.require('updates')
    restart.check()
    const current = await this.release()
    const rules = this.rules(current)
    const { pending } = await this.slots(current.version)
    // Not by this server, which would have said so above: one that ran before it began it, or a fleet server.
    if (pending?.state === 'installing') throw new Conflict('An update is being installed', 'busy')
    // The other slot holds the only release that is known to work.
    if (pending?.state === 'on_trial')
      throw new Conflict('The release that runs is on trial: wait until it is confirmed', 'trial')
    const target = await this.find(request.updateId, signal)
    const candidate = 'entry' in target ? { ...target.entry, ...NOT_YET_LOOKED_AT } : target.bundle
    const refused = refusal(candidate, rules)
    if (refused) throw refused
    this.checkBattery()
    if ('entry' in target) shelf.checkSpace(target.entry.size_bytes)
    // Much may have begun while the index was read.
    restart.check()
    const work = (context: JobContext) => this.carryOut(context, target, request, rules)
    return jobs.begin('update_install', work, { limitMs: JOB_MS, role: 'admin' })
  }

  /** See WayBack. */
  rollback(targetVersion: string | undefined, preserveData: boolean): Promise<Chosen> {
    this.parts.agent.require('updates')
    return this.wayBack.take(targetVersion, preserveData)
  }

  async status() {
    const { release: current, dataRecreated } = await this.info()
    const [found, failures] = await Promise.all([this.slots(current.version), this.parts.failures.list()])
    return {
      current,
      ...found,
      confirmed: this.confirmation?.confirmed ?? false,
      waiting_for: this.confirmation?.waitingFor ?? null,
      failures,
      data_recreated: dataRecreated,
    }
  }

  /** Whether the next start is one of this release, in any case; false also where that cannot be told. */
  async isSettled(): Promise<boolean> {
    const lines = await this.parts.agent.ask(['slots']).catch(() => [])
    const { booted, pending } = interpretSlots(lines, null)
    return booted !== null && pending === null
  }

  /** Throws CONFLICT while a release is not confirmed in its slot: what is to outlast the next restart must not meet one that may be given up. */
  async requireSettled(): Promise<void> {
    const { release, pending: noted } = await this.info()
    let pending: Pending | null = null
    try {
      pending = (await this.slots(release.version)).pending
    } catch (error) {
      // Where RAUC is what is broken, a reset may be the way out: what our own service has noted has to do.
      if (noted !== null) throw error
    }
    if (pending) throw new Conflict(SETTLE_FIRST[pending.state], 'pending')
  }

  async dismissFailures(): Promise<void> {
    this.parts.agent.require('updates')
    await this.parts.failures.dismiss()
  }

  /** A recording that runs is ended properly, but it ends: that must be meant. */
  reboot(force: boolean): void {
    const { agent, restart, anyRecording, bus } = this.parts
    agent.require('system')
    restart.check()
    if (anyRecording() && !force)
      throw new ApiError('RECORDING_IN_PROGRESS', 'A recording runs; force ends it and restarts', 'body.force')
    bus.publish('config', 'reboot_requested', { force })
    restart.soon('asked for')
  }

  private async carryOut({ signal, progress }: JobContext, target: Target, request: InstallRequest, rules: Rules) {
    const { agent, shelf, restart, backups, bus } = this.parts
    const unblock = restart.block('An update is being installed')
    const unpin = 'entry' in target ? () => {} : shelf.pin(target.bundle.path)
    const scratch = 'entry' in target ? shelf.scratch() : null
    let { version } = 'entry' in target ? target.entry : target.bundle
    try {
      const backup = request.backupConfig ? (await backups.create({ name: undefined, passphrase: null })).name : null
      if ('entry' in target && scratch !== null) {
        progress(0, 'Downloading')
        await download(target.entry, scratch, { signal, progress: (fraction) => progress(fraction * DOWNLOAD_SHARE) })
        version = await this.checkDownloaded(scratch, target.entry, rules)
      }
      if ('bundle' in target) await this.checkAgain(target.bundle, rules)
      signal.throwIfAborted()
      const begun = scratch === null ? 0 : DOWNLOAD_SHARE
      const onProgress = (fraction: number, text: string) => progress(begun + fraction * (1 - begun), text)
      const path = 'entry' in target ? (scratch ?? '') : target.bundle.path
      // Without the signal: the system service brings to its end what it has begun, and the job must not say otherwise.
      await agent.askForClient(['install', path], { timeoutMs: INSTALL_MS, onProgress })
      const restarting = request.restartAfter && !signal.aborted
      bus.publish('config', 'update_installed', { version, restart: restarting })
      unblock()
      if (restarting) restart.soon('update')
      return { version, backup, restarting }
    } finally {
      unblock()
      unpin()
      if (scratch !== null) rmSync(scratch, { force: true })
    }
  }

  /** Whoever holds the medium may have changed it since: RAUC looks at the signature and the device, not at the version. */
  private async checkAgain(bundle: Bundle, rules: Rules): Promise<void> {
    const now = await this.parts.shelf.lookAgain(bundle)
    if (!now) throw new NotFound(`update ${bundle.id}`)
    const refused = refusal(now, rules)
    if (refused) throw refused
    if (now.version !== bundle.version)
      throw new Conflict(`The bundle was replaced: it was ${bundle.version} and is ${now.version}`, 'update_id')
  }

  /** The index may lie: what counts is what is signed. */
  private async checkDownloaded(file: string, entry: IndexEntry, rules: Rules): Promise<string> {
    const bundle = await this.parts.shelf.look(file)
    const refused = refusal(bundle, rules)
    if (refused) throw refused
    if (bundle.version !== entry.version)
      throw new ApiError('INVALID_FORMAT', `The index promises ${entry.version}, the bundle is ${bundle.version}`, 'version')
    return entry.version
  }

  private async find(id: string, signal: AbortSignal): Promise<Target> {
    if (id.includes(':')) {
      const bundle = (await this.parts.shelf.list()).find((one) => one.id === id)
      if (!bundle) throw new NotFound(`update ${id}`)
      return { bundle }
    }
    const { index_url } = this.parts.settings.get()
    const entry = index_url === null ? undefined : (await fetchIndex(index_url, signal)).entries.find((one) => one.id === id)
    if (!entry) throw new NotFound(`update ${id}`)
    return { entry }
  }

  /** An index that cannot be had keeps the bundles that are here from nobody. */
  private async index(signal: AbortSignal): Promise<(ReleaseIndex & { url: string; error: string | null }) | null> {
    const { index_url: url } = this.parts.settings.get()
    if (url === null) return null
    try {
      return { ...(await fetchIndex(url, signal)), url, error: null }
    } catch (error) {
      return { entries: [], ignored: 0, url, error: errorText(error) }
    }
  }

  private async slots(runningVersion?: string) {
    const version = runningVersion ?? (await this.release()).version
    return interpretSlots(await this.parts.agent.askForClient(['slots']), version)
  }

  private rules({ version, compatible }: { version: string; compatible: string }): Rules {
    return { version, compatible, allowDowngrade: this.parts.settings.get().allow_downgrade }
  }

  private checkBattery(): void {
    const battery = this.parts.battery()
    if (battery?.discharging && battery.percent < LOW_BATTERY_PERCENT)
      throw new Conflict(`The battery is at ${battery.percent} %; connect the power supply first`, 'battery')
  }

  private async tellWhatFailed(): Promise<void> {
    const { dataLoss, failures, log } = this.parts
    try {
      dataLoss.tell((await this.info(this.ending.signal)).dataRecreated)
    } catch (error) {
      if (!this.ending.signal.aborted) log.warn({ error: errorText(error) }, 'whether the data was lost cannot be asked for')
    }
    try {
      await failures.tell(this.ending.signal)
    } catch (error) {
      if (!this.ending.signal.aborted) log.warn({ error: errorText(error) }, 'failed updates cannot be asked for')
    }
  }
}
