/** What can be asked of the recordings' storage as a whole: to be verified, to be recovered, and how the copies stand. */
import type { DeviceStorage } from '../files/index.ts'
import type { Dating } from './adopt.ts'
import type { Catalogue } from './catalogue.ts'
import type { CopyPlace, Places } from './places.ts'
import { type RecoverResult, type RecoverWork, recoverStorage } from './recover.ts'
import type { Replication } from './replication.ts'
import { type VerifyResult, type VerifyWork, verifyStorage } from './verify.ts'

export class StorageCare {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly storage: DeviceStorage,
    private readonly places: Places,
    readonly replication: Replication,
    private readonly clock: Dating,
    /** Bytes per second. */
    private readonly rate: () => number,
  ) {}

  verify(work: Omit<VerifyWork, 'rate'>): Promise<VerifyResult> {
    const { catalogue, storage, clock, replication, rate } = this
    const hasCopy = (...of: Parameters<Replication['copyOf']>) => replication.copyOf(...of) !== undefined
    return this.thenCopied(verifyStorage({ catalogue, storage, clock, hasCopy }, { ...work, rate }))
  }

  recover(work: Omit<RecoverWork, 'rate'>): Promise<RecoverResult> {
    const { catalogue, storage, clock, places, replication, rate } = this
    const copyOf: Replication['copyOf'] = (...of) => replication.copyOf(...of)
    const parts = { catalogue, storage, clock, placePath: (place: CopyPlace) => places.copyPlace(place), copyOf }
    return this.thenCopied(recoverStorage(parts, { ...work, rate }))
  }

  /** What has been found whole again, or anew, is to be copied. */
  private thenCopied<T>(work: Promise<T>): Promise<T> {
    return work.finally(() => this.replication.rescan())
  }
}
