/** The metadata database: one LMDB environment on the data partition, opened once, its tables typed by their owners. */
import { chmodSync, mkdirSync } from 'node:fs'
import { chmod, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Key, open, type RootDatabase } from 'lmdb'
import type { Component } from '../component.ts'
import { StartupError } from '../errors.ts'
import type { Logger } from '../log.ts'
import { MIGRATIONS, type Migration } from './migrations.ts'
import { Table } from './table.ts'

const MAP_SIZE = 4 * 1024 ** 3
const MAX_TABLES = 64

/** The transaction that is open; `failure` is what a part of it threw. */
interface Writing {
  failure?: { readonly error: unknown }
}

export class Store implements Component {
  private root: RootDatabase | undefined
  private writing: Writing | undefined
  private readonly tables = new Map<string, Table<never, never>>()

  constructor(
    /** Folder of the environment; made when missing. */
    private readonly path: string,
    private readonly log: Logger,
    private readonly migrations: readonly Migration[] = MIGRATIONS,
  ) {}

  async start(): Promise<void> {
    mkdirSync(this.path, { recursive: true, mode: 0o700 })
    this.root = open({
      path: join(this.path, 'camera.mdb'),
      mapSize: MAP_SIZE,
      maxDbs: MAX_TABLES,
      encoding: 'json',
      // A commit that has returned must survive a power cut.
      overlappingSync: false,
    })
    chmodSync(join(this.path, 'camera.mdb'), 0o600)
    await this.migrate()
  }

  async stop(): Promise<void> {
    await this.root?.close()
    this.root = undefined
    this.tables.clear()
  }

  table<K extends Key, V>(name: string): Table<K, V> {
    const known = this.tables.get(name)
    if (known) return known as Table<K, V>
    const table = new Table(this.database().openDB<V, K>({ name, encoding: 'json' }))
    this.tables.set(name, table as Table<never, never>)
    return table
  }

  /** All writes of `work` or none. `work` is synchronous. A transaction inside another is a part of it, and when it throws, both fail. */
  transaction<T>(work: () => T): T {
    if (this.writing) {
      try {
        return work()
      } catch (error) {
        this.writing.failure ??= { error }
        throw error
      }
    }
    return this.database().transactionSync(() => {
      const writing: Writing = {}
      this.writing = writing
      try {
        const result = work()
        if (writing.failure) throw writing.failure.error
        return result
      } finally {
        this.writing = undefined
      }
    })
  }

  /** The next number of a sequence, from 1; call it inside a transaction. */
  nextId(sequence: string): number {
    const meta = this.table<string, number>('meta')
    const id = (meta.get(`sequence:${sequence}`) ?? 0) + 1
    meta.put(`sequence:${sequence}`, id)
    return id
  }

  /** Marks a number of a sequence as used, when it came from elsewhere; call it inside a transaction. */
  useId(sequence: string, id: number): void {
    const meta = this.table<string, number>('meta')
    if ((meta.get(`sequence:${sequence}`) ?? 0) < id) meta.put(`sequence:${sequence}`, id)
  }

  get schemaVersion(): number {
    return this.table<string, number>('meta').get('schema_version') ?? 0
  }

  /** A consistent copy of the whole environment as one file, taken while others read and write. Replaces `file` when it is complete. */
  async backup(file: string): Promise<void> {
    const scratch = `${file}.tmp`
    await rm(scratch, { force: true })
    await this.database().backup(scratch, true)
    await chmod(scratch, 0o600)
    await rename(scratch, file)
  }

  private async migrate(): Promise<void> {
    const target = this.migrations.at(-1)?.version ?? 0
    const found = this.schemaVersion
    if (found > target) {
      throw new StartupError(`the database has schema version ${found}; this release knows ${target} at most`)
    }
    if (found > 0 && found < target) await this.backup(`${this.path}/before-schema-${target}.mdb`)
    for (const migration of this.migrations.filter((m) => m.version > found)) {
      this.transaction(() => {
        migration.run(this)
        this.table<string, number>('meta').put('schema_version', migration.version)
      })
      this.log.info({ version: migration.version, summary: migration.summary }, 'schema migrated')
    }
  }

  private database(): RootDatabase {
    if (!this.root) throw new Error('the store is not open')
    return this.root
  }
}
