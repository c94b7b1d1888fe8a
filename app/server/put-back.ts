/**
 * After an update was taken back, with the database from before it: the admins hear of it, and the recordings made in between, which that database
 * does not know, are found again on their medium. What the server's end cuts off begins anew with the next start.
 */
import type { Bus } from './bus.ts'
import type { DeviceStorage } from './files/index.ts'
import type { Jobs } from './jobs/index.ts'
import type { StorageCare } from './recording/index.ts'
import type { Store } from './store/index.ts'

const LIMIT_MS = 24 * 3_600_000

export interface PutBackParts {
  readonly store: Store
  readonly bus: Bus
  readonly jobs: Jobs
  readonly storage: DeviceStorage
  readonly care: StorageCare
}

export function settlePutBack({ store, bus, jobs, storage, care }: PutBackParts): void {
  const { putBack } = store
  if (!putBack) return
  bus.publish('alert', 'database_put_back', { ...putBack })
  jobs.begin(
    'storage_verify',
    async (context) => {
      const result = await care.verify({ ...context, checkIntegrity: false, repair: true })
      // Not with the medium away: it may hold recordings too.
      if (await storage.reachable(storage.recordings)) store.putBackSettled()
      return result
    },
    { role: 'admin', limitMs: LIMIT_MS },
  )
}
