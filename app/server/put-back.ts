/**
 * After another database has come into the place of the one in force (an update was taken back, or an older release given up): the admins hear of it,
 * the recordings made in between, which that database does not know, are found again on their medium, and the age of those that it knows begins anew.
 * What the server's end cuts off begins anew with the next start.
 */
import { setImmediate as breathe } from 'node:timers/promises'
import type { Bus } from './bus.ts'
import type { Component } from './component.ts'
import { errorText } from './errors.ts'
import type { DeviceStorage } from './files/index.ts'
import type { JobContext, Jobs } from './jobs/index.ts'
import type { Logger } from './log.ts'
import type { Clock } from './platform/index.ts'
import type { Catalogue, StorageCare } from './recording/index.ts'
import type { Store } from './store/index.ts'

const LIMIT_MS = 24 * 3_600_000
const AGAIN_MS = 60_000

export interface PutBackParts {
  readonly store: Store
  readonly bus: Bus
  readonly jobs: Jobs
  readonly storage: DeviceStorage
  readonly care: StorageCare
  readonly log: Logger
}

export function settlePutBack({ store, bus, jobs, storage, care, log }: PutBackParts): void {
  const { putBack } = store
  if (!putBack || putBack.settled?.includes('files')) return
  const { origin = 'copy', schema, copied } = putBack
  bus.publish('alert', 'database_put_back', { origin, schema, copied })
  const work = async (context: JobContext) => {
    const result = await care.verify({ ...context, checkIntegrity: false, repair: true })
    // Not with the medium away: it may hold recordings too.
    if (await storage.reachable(storage.recordings)) store.putBackSettled('files')
    return result
  }
  try {
    jobs.begin('storage_verify', work, { role: 'admin', limitMs: LIMIT_MS })
  } catch (error) {
    // A full disk is no reason not to start: the next start tries again.
    log.error({ error: errorText(error) }, 'the recordings made since the copy of the database are not looked for')
  }
}

/**
 * Tags keep recordings, and those given since the database was copied are lost: recordings count as new, lest the first look at their age deletes what
 * somebody wanted to keep. Begins before retention does.
 */
export class PutBackAges implements Component {
  private readonly ending = new AbortController()
  private waiting = false
  private working: Promise<void> | undefined
  private again: NodeJS.Timeout | undefined
  private readonly onSync = () => this.beginAnew()

  constructor(
    private readonly store: Store,
    private readonly catalogue: Catalogue,
    private readonly clock: Pick<Clock, 'now' | 'synchronised'>,
    private readonly bus: Bus,
    private readonly log: Logger,
    private readonly againMs = AGAIN_MS,
  ) {}

  start(): void {
    const { putBack } = this.store
    this.waiting = putBack !== undefined && !putBack.settled?.includes('ages')
    this.bus.on('clock-synchronised', this.onSync)
    if (this.clock.synchronised) this.beginAnew()
  }

  async stop(): Promise<void> {
    this.ending.abort()
    clearTimeout(this.again)
    this.bus.off('clock-synchronised', this.onSync)
    await this.working
  }

  /** As long as not, nothing may be deleted for its age. */
  get areKnown(): boolean {
    return !this.waiting
  }

  /** The settings as retention may follow them by now. */
  limit<Settings extends { readonly retention_days: number }>(settings: Settings): Settings {
    return this.areKnown ? settings : { ...settings, retention_days: 0 }
  }

  private beginAnew(): void {
    if (!this.waiting || this.working) return
    clearTimeout(this.again)
    this.working = this.restoreAll().finally(() => {
      this.working = undefined
    })
  }

  /** A crash in between begins anew. */
  private async restoreAll(): Promise<void> {
    const now = this.clock.now().getTime()
    try {
      for (let after: number | null = 0; after !== null; await breathe()) {
        if (this.ending.signal.aborted) return
        after = this.catalogue.restoreBatch(after, now)
      }
      this.store.putBackSettled('ages')
      this.waiting = false
    } catch (error) {
      // A full disk, say.
      this.log.error({ error: errorText(error) }, 'the age of recordings is not known: none is deleted for it')
      if (!this.ending.signal.aborted) this.again = setTimeout(this.onSync, this.againMs)
    }
  }
}
