/** Who changed what when, the newest changes of all sections, and which of them the next undo takes back. */
import type { Store, Table } from '../store/index.ts'
import type { Section, SectionValues } from './sections.ts'

export const MAX_CHANGES = 200

export interface ConfigChange<S extends Section = Section> {
  readonly id: number
  readonly section: S
  /** ISO 8601. */
  readonly timestamp: string
  /** Null: the device itself. */
  readonly username: string | null
  readonly address: string | null
  readonly before: SectionValues[S]
  readonly after: SectionValues[S]
  /** The change that this one has taken back. */
  readonly undoes: number | null
  /** The change that has taken this one back. */
  readonly undone_by: number | null
}

export type NewChange = Omit<ConfigChange, 'id' | 'undone_by'>

export class ConfigHistory {
  private readonly table: Table<number, ConfigChange>

  constructor(private readonly store: Store) {
    this.table = store.table('config_history')
  }

  /** Call it inside the transaction that stores the section. */
  add(change: NewChange): ConfigChange {
    const id = this.store.nextId('config_history')
    const entry = { id, ...change, undone_by: null }
    this.table.put(id, entry)
    if (change.undoes !== null) {
      const undone = this.table.get(change.undoes)
      if (undone) this.table.put(undone.id, { ...undone, undone_by: id })
    }
    for (const key of [...this.table.keys({ end: id - MAX_CHANGES + 1 })]) this.table.remove(key)
    return entry
  }

  /** Newest first. */
  list(limit: number, offset: number): { changes: ConfigChange[]; total: number } {
    const page = [...this.table.range({ reverse: true, limit, offset })]
    return { changes: page.map(({ value }) => value), total: this.table.count() }
  }

  /** The newest change that stands: neither taken back nor itself the taking back of another. */
  latest(section?: Section): ConfigChange | undefined {
    for (const { value } of this.table.range({ reverse: true })) {
      if (value.undoes !== null || value.undone_by !== null) continue
      if (section === undefined || value.section === section) return value
    }
    return undefined
  }
}
