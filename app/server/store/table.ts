/** A typed LMDB table. Writes are synchronous and durable when they return; several belong into `Store.transaction`. */
import type { Database, Key, RangeOptions } from 'lmdb'
import type { AnyTable } from './headroom.ts'

/** Makes sure that there is room for what a table is about to do, or throws. */
export interface Room {
  /** So many bytes of value. */
  put(table: AnyTable, bytes: number): void
  remove(table: AnyTable): void
  clear(table: AnyTable): void
}

export class Table<K extends Key, V> {
  constructor(
    private readonly db: Database<V, K>,
    private readonly room: Room,
  ) {}

  get(key: K): V | undefined {
    return this.db.get(key)
  }

  has(key: K): boolean {
    return this.db.doesExist(key)
  }

  put(key: K, value: V): void {
    this.room.put(this.db, Buffer.byteLength(JSON.stringify(value)))
    this.db.putSync(key, value)
  }

  remove(key: K): void {
    this.room.remove(this.db)
    this.db.removeSync(key)
  }

  /** Removes all entries; in a transaction of its own. */
  clear(): void {
    this.room.clear(this.db)
    this.db.clearSync()
  }

  /** In key order; `options` bound it (`start`, `end`, `reverse`, `limit`, `offset`). */
  range(options: RangeOptions = {}): Iterable<{ key: K; value: V }> {
    return this.db.getRange(options)
  }

  keys(options: RangeOptions = {}): Iterable<K> {
    return this.db.getKeys(options)
  }

  count(options: RangeOptions = {}): number {
    return this.db.getKeysCount(options)
  }
}
