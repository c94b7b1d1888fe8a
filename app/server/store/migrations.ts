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
  { version: 2, summary: 'users: enabled, cameras, two-factor login, a second sealed secret', run: extendUsers },
  { version: 3, summary: 'recordings: parts, codecs, where their time comes from, who started them', run: extendRecordings },
]

/** The SHA-256 secret cannot be made of the MD5 one: it follows with the user's next login. */
function extendUsers(store: Store): void {
  const users = store.table<string, Record<string, unknown>>('users')
  for (const { key, value } of [...users.range()]) {
    const sealed = typeof value.sealed_ha1 === 'string' ? { md5: value.sealed_ha1, sha256: null } : null
    users.put(key, { ...value, enabled: true, cameras: null, two_factor: null, sealed_ha1: sealed })
  }
}

/** What was not known then gets a neutral value. The catalogue makes its indexes anew. */
function extendRecordings(store: Store): void {
  const recordings = store.table<number, Record<string, unknown>>('recordings')
  for (const id of [...recordings.keys()]) {
    const row = recordings.get(id)
    const { filename, path, size, duration } = row ?? {}
    recordings.put(id, {
      ...row,
      parts: [{ filename, path, duration, size, sha256: null }],
      video_codec: 'h264',
      audio_codec: null,
      time_synced: true,
      boot_id: '',
      trigger: 'manual',
      created_by: null,
    })
  }
}
