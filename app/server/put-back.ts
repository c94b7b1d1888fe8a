/**
 * After another database has come into the place of the one in force (an update was taken back, or an older release given up): the admins hear of it,
 * and the recordings made in between, which that database does not know, are found again on their medium.
 * What the server's end cuts off begins anew with the next start.
 */
import type { Bus } from './bus.ts'
import { errorText } from './errors.ts'
import type { DeviceStorage } from './files/index.ts'
import type { JobContext, Jobs } from './jobs/index.ts'
import type { Logger } from './log.ts'
import type { StorageCare } from './recording/index.ts'
import type { Store } from './store/index.ts'

const LIMIT_MS = 24 * 3_600_000

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
