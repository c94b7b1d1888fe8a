/** The stored keys in a backup of settings. */
import { Value } from '@sinclair/typebox/value'
import type { Bus } from '../bus.ts'
import { parseResolution } from '../cameras/index.ts'
import { Conflict, InvalidRequest } from '../errors.ts'
import type { Places } from '../recording/index.ts'
import type { Store, Table } from '../store/index.ts'
import { STORED_KEYS } from './keys.ts'
import { withTwins } from './recording-settings.ts'

type RecordingStorage = Parameters<Places['check']>[0]

export class SettingsTransfer {
  /** Key in the file. */
  readonly name = 'settings'
  private readonly table: Table<string, unknown>

  constructor(
    store: Store,
    private readonly places: Places,
    private readonly bus: Bus,
  ) {
    this.table = store.table('settings')
  }

  collect(): Record<string, unknown> {
    return Object.fromEntries(Object.keys(STORED_KEYS).map((key) => [key, this.value(key)]))
  }

  async prepare(value: unknown) {
    const before = this.collect()
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw new InvalidRequest('backup.content.settings', 'Expected an object')
    for (const [key, one] of Object.entries(value)) check(key, one)
    const batch = withTwins(value as Record<string, unknown>, (key) => this.value(key))
    const changed = Object.entries(batch).filter(([key, one]) => !Value.Equal(this.value(key), one))
    const storage = changed.find(([key]) => key === 'recordingStorage')
    if (storage) await this.places.check(storage[1] as RecordingStorage)
    return {
      changes: changed.map(([key]) => key),
      skipped: [],
      write: () => {
        if (!Value.Equal(this.collect(), before)) throw new Conflict('The settings were changed meanwhile', 'settings')
        for (const [key, one] of changed) this.table.put(key, one)
      },
      act: () => {
        for (const [key, one] of changed) this.bus.emit('state', { key, value: one })
        if (changed.length > 0) this.bus.publish('config', 'settings_changed', { keys: changed.map(([key]) => key) })
      },
    }
  }

  private value(key: string): unknown {
    return this.table.get(key) ?? STORED_KEYS[key]?.initial
  }
}

function check(key: string, value: unknown): void {
  const where = `backup.content.settings.${key}`
  const known = Object.hasOwn(STORED_KEYS, key) ? STORED_KEYS[key] : undefined
  if (!known) throw new InvalidRequest(where, 'This key is not known')
  const error = Value.Errors(known.schema, value).First()
  if (error) throw new InvalidRequest(`${where}${error.path.replaceAll('/', '.')}`, error.message)
  const { resolution } = value as { resolution?: string }
  if (resolution !== undefined && !parseResolution(resolution))
    throw new InvalidRequest(`${where}.resolution`, 'Both sides must be even and at most 7680x4320')
}
