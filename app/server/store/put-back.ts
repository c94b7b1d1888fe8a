/** What a database says of itself that has come into the place of another. */
import { openEnvironment } from './environment.ts'
import { allocateLock } from './headroom.ts'

/** Its entry of the table `meta`. */
export const PUT_BACK = 'put_back'
/** Another one: before this database there was none, and no release has been confirmed on it. Not so for a copy: there is a newer one. */
export const BORN = 'born'
/** What follows from it for the rest of the device: files that it does not know, and the age of the recordings that it knows. */
export const PUT_BACK_PARTS = ['files', 'ages'] as const
export type PutBackPart = (typeof PUT_BACK_PARTS)[number]

export interface PutBack {
  /**
   * `copy`: made before an update, which has been taken back; `new`: the same, but there was none before; `replaced`: kept while an older release ran that
   * was not confirmed. Absent in copies of older releases, which knew only copies.
   */
  readonly origin?: 'copy' | 'new' | 'replaced'
  readonly schema: number
  /** Of when it is, in ISO 8601. */
  readonly copied: string
  readonly settled?: readonly PutBackPart[]
}

/** In a file that is not in force: it comes into force together with this. Makes the database where there is none. */
export async function markPutBack(file: string, putBack: PutBack): Promise<void> {
  allocateLock(file)
  const environment = openEnvironment(file)
  const meta = environment.openDB<PutBack, string>({ name: 'meta', encoding: 'json' })
  meta.transactionSync(() => {
    meta.putSync(PUT_BACK, putBack)
    if (putBack.origin === 'copy') meta.removeSync(BORN)
  })
  await environment.close()
}
