/** What a part of the server gives into a backup of settings, and how it takes it back. */
import type { Requester } from '../auth/index.ts'

export interface Prepared {
  /** What would be another than now, in words: `storage.retention_days`, `user eve: created`. */
  readonly changes: readonly string[]
  /** What the file holds and this device cannot take. */
  readonly skipped: readonly string[]
  /** Into the database and nowhere else, within the one transaction of the restore. Throws CONFLICT when `changes` are not true any more. */
  write(): void
  /** Makes it act and known, when the transaction is stored. What it throws is told, and takes nothing back. */
  act(): Promise<void> | void
}

export interface Part {
  /** Key in the file. */
  readonly name: string
  collect(secrets: boolean): unknown
  /** Throws `InvalidRequest` for anything that does not fit. Changes nothing. */
  prepare(value: unknown, secrets: boolean, by: Requester): Promise<Prepared> | Prepared
}
