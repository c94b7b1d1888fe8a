/** Releases of the server as far as the database can tell: each knows a number of schemas, and each schema but the first changes what is in it. */
import pino from 'pino'
import { type Migration, Store } from '../../app/server/store/index.ts'

/** Every entry says which schema wrote it last. */
export interface Entry {
  readonly schema: number
  readonly text: string
}

interface Special {
  /** A further schema. */
  readonly last?: Migration
  /** Called within each migration, before each entry. */
  readonly step?: () => void
}

function migration(version: number, step: () => void): Migration {
  const run = (store: Store) => {
    const table = store.table<number, Entry>('entries')
    for (const { key, value } of [...table.range()]) {
      step()
      table.put(key, { ...value, schema: version })
    }
    // A table that only newer releases know.
    store.table<string, number>(`of-schema-${version}`).put('version', version)
  }
  return { version, summary: `schema ${version}`, run }
}

/** The store of a release, not started. */
export function release(folder: string, schemas: number, { last, step = () => {} }: Special = {}): Store {
  const migrations = Array.from({ length: schemas }, (_, n) => migration(n + 1, step))
  return new Store(`${folder}/db`, pino({ level: 'silent' }), last ? [...migrations, last] : migrations, `${folder}/db-backups`)
}

export function entriesOf(store: Store): Entry[] {
  return [...store.table<number, Entry>('entries').range()].map(({ value }) => value)
}

/** Adds so many, in one transaction. */
export function addEntries(store: Store, count: number, text: string): void {
  const table = store.table<number, Entry>('entries')
  const first = table.count()
  store.transaction(() => {
    for (let n = 0; n < count; n++) table.put(first + n, { schema: store.schemaVersion, text })
  })
}
