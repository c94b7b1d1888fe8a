/**
 * The newer database while an older release runs on its own. As long as no release has been confirmed on that one, it only stands in for the newer
 * (`replaced-N.mdb`, with its schema N), and a release that knows N takes the newer back; afterwards that is merely put aside (`aside-N.mdb`, one at
 * most). Each change is one rename: cut off, the next start finds it done or not done.
 */
import { linkSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { syncFolder } from '../platform/files.ts'

export class Replaced {
  constructor(private readonly folder: string) {}

  /** The schema of what a database of this `schema` stands in for, always a higher one; null: it stands for itself. */
  standsFor(schema: number): number | null {
    return this.schemas().find((one) => one > schema) ?? null
  }

  /** What is left of a change that was cut off: another name of the database of this schema itself. */
  tidy(schema: number): void {
    const left = this.schemas().filter((one) => one <= schema)
    if (left.length === 0) return
    remove(...left.map((one) => this.file(one)))
    syncFolder(this.folder)
  }

  /** Makes `successor` the database. The one in force has this `schema` and is kept: where it only stands in for another, that stays the one to take back. */
  replace(database: string, schema: number, successor: string): void {
    const aside = this.aside(schema)
    const kept = this.standsFor(schema) === null ? this.file(schema) : aside
    const scratch = join(this.folder, 'aside.tmp')
    remove(scratch)
    linkSync(database, scratch)
    renameSync(scratch, kept)
    // Where both were the same file already, the renaming has done nothing.
    remove(scratch)
    syncFolder(this.folder)
    renameSync(successor, database)
    syncFolder(dirname(database))
    remove(...this.asides().filter((file) => file !== kept))
    syncFolder(this.folder)
  }

  /** Makes the one of this `schema` the database again; `mark` is told from when it is (ISO 8601), and writes into it before. */
  async takeBack(database: string, schema: number, mark: (file: string, from: string) => Promise<void>): Promise<void> {
    const file = this.file(schema)
    // The lock's blocks are there: on a full disk a new one would be a hole, and LMDB would die of it.
    remove(`${file}-lock`)
    linkSync(`${database}-lock`, `${file}-lock`)
    await mark(file, statSync(file).mtime.toISOString())
    remove(`${file}-lock`)
    renameSync(file, database)
    syncFolder(dirname(database))
    syncFolder(this.folder)
  }

  /** A database of this `schema` stands for itself from now on. */
  accept(schema: number): void {
    this.tidy(schema)
    const newer = this.standsFor(schema)
    if (newer === null) return
    const aside = this.aside(newer)
    renameSync(this.file(newer), aside)
    remove(...this.asides().filter((file) => file !== aside))
    syncFolder(this.folder)
  }

  /** Files that nobody takes back. */
  asides(): string[] {
    const names = namesIn(this.folder).filter((name) => /^aside-\d+\.mdb$/.test(name))
    return names.map((name) => join(this.folder, name))
  }

  private schemas(): number[] {
    return namesIn(this.folder).flatMap((name) => {
      const [, schema] = /^replaced-(\d+)\.mdb$/.exec(name) ?? []
      return schema ? Number(schema) : []
    })
  }

  private file(schema: number): string {
    return join(this.folder, `replaced-${schema}.mdb`)
  }

  private aside(schema: number): string {
    return join(this.folder, `aside-${schema}.mdb`)
  }
}

/** None where there is no such folder. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return []
    throw error
  }
}

export function remove(...files: readonly string[]): void {
  for (const file of files) rmSync(file, { force: true })
}
