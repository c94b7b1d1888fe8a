/** The metadata database: one LMDB environment on the data partition, opened once, its tables typed by their owners. */
import { chmodSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Key, RootDatabase } from 'lmdb'
import type { Component } from '../component.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import { openEnvironment } from './environment.ts'
import { type AnyTable, allocateLock, Demand, Headroom, usedBytes } from './headroom.ts'
import { MIGRATIONS, type Migration } from './migrations.ts'
import { BORN, markPutBack, PUT_BACK, PUT_BACK_PARTS, type PutBack, type PutBackPart } from './put-back.ts'
import { SchemaBackups } from './schema-backups.ts'
import { type Room, Table } from './table.ts'

/** The transaction that is open; `failure` is what a part of it threw. */
interface Writing {
  readonly demand: Demand
  failure?: { readonly error: unknown }
}

export class Store implements Component {
  private root: RootDatabase | undefined
  private headroom: Headroom | undefined
  /** Those that are in the file. */
  private names = new Set<string>()
  private writing: Writing | undefined
  private readonly tables = new Map<string, Table<never, never>>()
  private readonly file: string
  private readonly backups: SchemaBackups
  private readonly room: Room = {
    put: (table, bytes) => this.demand(false, (all) => all.add(table, bytes)),
    remove: (table) => this.demand(true, (all) => all.add(table, 0)),
    clear: (table) => this.demand(true, (all) => all.clear(table)),
  }

  constructor(
    /** Folder of the environment; made when missing. */
    private readonly path: string,
    private readonly log: Logger,
    private readonly migrations: readonly Migration[] = MIGRATIONS,
    /** Folder of the copies from before changes of the schema, on the same file system. */
    backups: string = join(path, 'backups'),
    /** Told when the disk is so full that nothing can be stored, and when it can again. */
    private readonly onFull: (full: boolean) => void = () => {},
  ) {
    this.file = join(path, 'camera.mdb')
    this.backups = new SchemaBackups(backups)
  }

  async start(): Promise<void> {
    mkdirSync(this.path, { recursive: true, mode: 0o700 })
    const known = this.migrations.at(-1)?.version ?? 0
    // One that begins stands in for nothing.
    if (!existsSync(this.file)) this.backups.replaced.accept(0)
    this.open()
    chmodSync(this.file, 0o600)
    await this.takeBack(known)
    if (this.schemaVersion > known) await this.goBack(known)
    await this.migrate(known)
  }

  async stop(): Promise<void> {
    this.headroom?.close()
    this.headroom = undefined
    await this.root?.close()
    this.root = undefined
    this.tables.clear()
  }

  table<K extends Key, V>(name: string): Table<K, V> {
    const known = this.tables.get(name)
    if (known) return known as Table<K, V>
    if (!this.names.has(name)) this.demand(true, (all) => all.add(this.database() as AnyTable, 1))
    const table = new Table(this.database().openDB<V, K>({ name, encoding: 'json' }), this.room)
    this.names.add(name)
    this.tables.set(name, table as Table<never, never>)
    return table
  }

  /**
   * All writes of `work` or none. `work` is synchronous. A transaction inside another is a part of it, and when it throws, both fail. Where the
   * disk is full, writing throws INSUFFICIENT_STORAGE; removing, alone or by itself in a transaction, still works.
   */
  transaction<T>(work: () => T): T {
    return this.write(work, false)
  }

  /** A transaction that also works where the disk is full: for little, and for what must not wait for space, such as the end of a recording. */
  urgent<T>(work: () => T): T {
    return this.write(work, true)
  }

  private write<T>(work: () => T, urgent: boolean): T {
    if (this.writing) {
      try {
        return work()
      } catch (error) {
        this.writing.failure ??= { error }
        throw error
      }
    }
    return this.database().transactionSync(() => {
      const writing: Writing = { demand: new Demand(urgent) }
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

  /** Something was refused, and would be again. */
  get isFull(): boolean {
    return this.headroom?.isFull ?? false
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

  /** Told until somebody has seen to what that means for the rest of the device. */
  get putBack(): PutBack | undefined {
    return this.table<string, PutBack>('meta').get(PUT_BACK)
  }

  /** That part needs no more care; with the last one it is forgotten. */
  putBackSettled(part: PutBackPart): void {
    const meta = this.table<string, PutBack>('meta')
    this.urgent(() => {
      const putBack = meta.get(PUT_BACK)
      const settled = [...new Set([...(putBack?.settled ?? []), part])]
      if (!putBack || settled.length === PUT_BACK_PARTS.length) meta.remove(PUT_BACK)
      else meta.put(PUT_BACK, { ...putBack, settled })
    })
  }

  /** Whether the release that runs has been confirmed on this database, or one before it: no way leads round it any more. */
  get isAccepted(): boolean {
    return !this.table<string, boolean>('meta').has(BORN) && this.backups.replaced.standsFor(this.schemaVersion) === null
  }

  /** The release that runs is confirmed. */
  accept(): void {
    if (this.isAccepted) return
    const meta = this.table<string, boolean>('meta')
    this.urgent(() => meta.remove(BORN))
    this.backups.replaced.accept(this.schemaVersion)
    this.log.info('the database is accepted')
  }

  /** All that is missing to the schema `known`, or nothing. */
  private async migrate(known: number): Promise<void> {
    const found = this.schemaVersion
    const missing = this.migrations.filter(({ version }) => version > found)
    if (missing.length === 0) return
    // A copy is compacted: it never gets larger than what is in use.
    if (found > 0) await this.backups.keep(found, usedBytes(this.database() as AnyTable), (file) => this.copy(file))
    this.transaction(() => {
      if (found === 0) this.table<string, boolean>('meta').put(BORN, true)
      for (const migration of missing) migration.run(this)
      this.table<string, number>('meta').put('schema_version', known)
    })
    for (const { version, summary } of missing) this.log.info({ version, summary }, 'schema migrated')
  }

  /** What says later on that the copy has become the database is in it from the beginning: it comes into force together with it. */
  private async copy(file: string): Promise<void> {
    await this.database().backup(file, true)
    await markPutBack(file, { origin: 'copy', schema: this.schemaVersion, copied: now() })
  }

  /**
   * An update was taken back: this release cannot read what the newer one has made of the database, but its own is there as it was left. Where there was
   * none before and nobody has accepted the newer one, this release begins a new one; never otherwise, it would have nobody's accounts.
   */
  private async goBack(known: number): Promise<void> {
    const found = this.schemaVersion
    const isBorn = this.table<string, boolean>('meta').has(BORN)
    const begin = (file: string) => markPutBack(file, { origin: 'new', schema: known, copied: now() })
    await this.stop()
    await this.backups.putBack(known, found, this.file, isBorn ? begin : null)
    this.open()
    this.log.error(
      { ...this.putBack, instead_of: found },
      this.putBack?.origin === 'new'
        ? 'an update was taken back: the database begins anew, there was none before it'
        : 'an update was taken back: the database is the copy from before it, later changes of settings are lost',
    )
  }

  /** An older release ran on its own database without being confirmed: the one that it replaced, which this release knows, comes into force again. */
  private async takeBack(known: number): Promise<void> {
    const { replaced } = this.backups
    const schema = this.schemaVersion
    replaced.tidy(schema)
    const newer = replaced.standsFor(schema)
    if (newer === null || newer > known) return
    const kept = this.becomesCopy(schema)
    await this.stop()
    if (kept) await this.backups.keepItself(schema, this.file)
    await replaced.takeBack(this.file, newer, (file, copied) =>
      this.markTakenBack(file, { origin: 'replaced', schema: newer, copied }),
    )
    this.open()
    this.log.error(
      { ...this.putBack, instead_of: schema },
      'an older release was not confirmed: the database from before it is in force again, later changes of settings are lost',
    )
  }

  /** Better without the mark than not at all: it may be the disk that is full. */
  private async markTakenBack(file: string, putBack: PutBack): Promise<void> {
    try {
      await markPutBack(file, putBack)
    } catch (error) {
      this.log.error({ error: errorText(error) }, 'recordings made while the older release ran are not looked for')
    }
  }

  /** Its release may be tried again. A full disk is no reason to keep the better database away. */
  private becomesCopy(schema: number): boolean {
    if (schema === 0) return false
    try {
      this.urgent(() => this.table<string, PutBack>('meta').put(PUT_BACK, { origin: 'copy', schema, copied: now() }))
      return true
    } catch (error) {
      this.log.error({ schema, error: errorText(error) }, 'the database of the older release is not kept')
      return false
    }
  }

  /** What is written outside a transaction is one of its own. */
  private demand(removing: boolean, add: (all: Demand) => void): void {
    const all = this.writing?.demand ?? new Demand(false)
    add(all)
    this.headroom?.require(all, removing)
  }

  private open(): void {
    allocateLock(this.file)
    this.root = openEnvironment(this.file)
    this.names = new Set([...this.root.getKeys()].map(String))
    this.headroom = new Headroom(this.file, this.root as AnyTable, this.log, this.onFull)
  }

  private database(): RootDatabase {
    if (!this.root) throw new Error('the store is not open')
    return this.root
  }
}

function now(): string {
  return new Date().toISOString()
}
