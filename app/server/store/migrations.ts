/**
 * The schema's history. Each migration leads from `version - 1` to `version` and runs in one transaction together with the new version
 * number; a data file is never changed by a release that does not know it.
 */
import type { Store } from './store.ts'

export interface Migration {
  readonly version: number
  readonly summary: string
  run(store: Store): void
}

export const MIGRATIONS: readonly Migration[] = [
  { version: 1, summary: 'users, sessions, settings, cameras and the recordings catalogue', run: () => {} },
]
