/** Where the server runs on the firmware image: what updates, resets and restarts the device, put together. */
import { join } from 'node:path'
import type { Auth } from './auth/index.ts'
import type { Backups } from './backup/index.ts'
import type { Bus } from './bus.ts'
import type { Cameras } from './cameras/index.ts'
import type { Options } from './cli.ts'
import type { Component } from './component.ts'
import type { Jobs } from './jobs/index.ts'
import { childLogger, type Logger } from './log.ts'
import type { MediaSupervisor } from './media/index.ts'
import { inspectBundle, readBattery, type SystemAgent } from './platform/index.ts'
import { FactoryReset, Restart } from './reset/index.ts'
import type { Store } from './store/index.ts'
import {
  acceptsOutsideTrial,
  apiAnswers,
  Confirmation,
  DataLoss,
  Failures,
  picturesCome,
  Shelf,
  storeWorks,
  Updates,
  UpdatesConfiguration,
} from './updates/index.ts'

export interface ApplianceParts {
  readonly options: Options
  readonly agent: SystemAgent
  readonly store: Store
  readonly auth: Auth
  readonly jobs: Jobs
  readonly backups: Backups
  readonly media: MediaSupervisor
  readonly cameras: Cameras
  readonly bus: Bus
  readonly log: Logger
  readonly anyRecording: () => boolean
}

export class Appliance implements Component {
  readonly updatesConfiguration: UpdatesConfiguration
  readonly updates: Updates
  readonly factoryReset: FactoryReset
  private readonly restart: Restart
  private confirmation: Confirmation | undefined

  constructor(private readonly parts: ApplianceParts) {
    const { options, agent, store, auth, jobs, backups, bus, anyRecording } = parts
    const folder = join(options.dataDir, 'updates')
    const log = childLogger(parts.log, 'updates')
    this.restart = new Restart(agent, bus, childLogger(parts.log, 'restart'))
    this.updatesConfiguration = new UpdatesConfiguration(store, agent, bus, join(folder, 'hawkbit-token'), log)
    this.updates = new Updates({
      agent,
      shelf: new Shelf(folder, options.mediaRoot, (file) => inspectBundle(file, options.updateKeyring)),
      settings: this.updatesConfiguration,
      failures: new Failures(agent, store, bus, log),
      dataLoss: new DataLoss(store, bus, log),
      restart: this.restart,
      jobs,
      backups,
      bus,
      log,
      battery: readBattery,
      anyRecording,
    })
    this.factoryReset = new FactoryReset({
      agent,
      auth,
      restart: this.restart,
      requireSettled: () => this.updates.requireSettled(),
      bus,
      log: childLogger(parts.log, 'reset'),
    })
  }

  async start(): Promise<void> {
    this.factoryReset.start()
    await this.updates.start()
    this.updatesConfiguration.start()
  }

  /** The API answers on this port: whether this release is good can be found out now. */
  watch(port: number): void {
    const { options, agent, store, auth, media, cameras, log } = this.parts
    const checks = [
      storeWorks(store),
      apiAnswers(options.bind, port, auth.selfToken),
      acceptsOutsideTrial(store, () => this.updates.isSettled()),
      picturesCome(media, cameras),
    ]
    this.confirmation = new Confirmation(agent, checks, childLogger(log, 'updates'), {}, () => store.accept())
    // Nobody falls back there.
    if (!agent.available) store.accept()
    this.updates.watch(this.confirmation)
    this.confirmation.start()
  }

  async stop(): Promise<void> {
    await this.confirmation?.stop()
    await this.updatesConfiguration.stop()
    await this.updates.stop()
    this.factoryReset.stop()
    this.restart.stop()
  }
}
