/**
 * The ways back over a change of the schema: copies of the database from before it, named by the schema they have and by their SHA-256. When an
 * update is taken back, the old release finds its own copy here, and `Replaced` keeps the newer database. Whatever is cut off, the next start finds
 * the database as it was or as it shall be, whole.
 */
import { createHash } from 'node:crypto'
import { chmodSync, closeSync, createReadStream, fsyncSync, linkSync, openSync, renameSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { errorText, StartupError } from '../errors.ts'
import { ensureFolder, syncFolder } from '../platform/files.ts'
import { namesIn, Replaced, remove } from './replaced.ts'

/** The copy for the schema that was left last, and one from before. */
const KEPT = 2
/** What must stay free beside a copy. */
const MARGIN_BYTES = 16 * 1024 ** 2
const COPYING = 'copy.tmp'
const COPY = /^schema-(\d+)\.([0-9a-f]{64})\.mdb$/
/** Each start comes to the same end: somebody has to decide. */
const WAY_OUT = 'start the newer release again, or reset the device to its factory state, which removes all settings and accounts'

interface Copy {
  readonly schema: number
  readonly sha256: string
  readonly file: string
}

/** Writes something into the database in a file that nobody has open. */
type Write = (file: string) => Promise<void>

export class SchemaBackups {
  readonly replaced: Replaced

  constructor(private readonly folder: string) {
    this.replaced = new Replaced(folder)
  }

  /**
   * Keeps what `copy` writes of a database of this schema. Where that fails the server must not start: nothing has been changed yet, and the release
   * before can still run on the database as it is.
   */
  async keep(schema: number, bytes: number, copy: Write): Promise<void> {
    try {
      ensureFolder(this.folder, 0o700)
      // Of this schema there will be a newer one; those of higher schemas are of updates that were taken back.
      this.remove((one) => one.schema >= schema)
      await this.write(schema, bytes, copy)
    } catch (error) {
      throw new StartupError(`the database cannot be copied before its schema ${schema} is changed: ${errorText(error)}`)
    }
    remove(
      ...this.copies()
        .slice(KEPT)
        .map(({ file }) => file),
    )
  }

  /**
   * Makes the copy of `schema` the database, or, where there is none and `begin` is given, what that writes into a new one; the database of the schema
   * `newer` is kept. Throws where there is nothing to begin with or the copy is damaged, before anything has been changed.
   */
  async putBack(schema: number, newer: number, database: string, begin: Write | null): Promise<void> {
    const copy = this.copies().find((one) => one.schema === schema)
    if (!copy && !begin) throw new StartupError(`${newerThan(schema, newer)}, and there is no copy from before: ${WAY_OUT}`)
    // Damaged ones must not even be opened.
    if (copy && (await hashOf(copy.file)) !== copy.sha256)
      throw new StartupError(`${newerThan(schema, newer)}, and its copy from before is damaged (${copy.file}): ${WAY_OUT}`)
    const scratch = join(this.folder, COPYING)
    remove(scratch)
    if (!copy && begin) {
      ensureFolder(this.folder, 0o700)
      await writeWhole(scratch, begin)
    }
    this.replaced.replace(database, newer, copy?.file ?? scratch)
  }

  /** Keeps a database that nobody has open as the copy for its schema. Where it stays in force after all, the copy is damaged until the next one. */
  async keepItself(schema: number, database: string): Promise<void> {
    this.remove((one) => one.schema === schema)
    linkSync(database, join(this.folder, `schema-${schema}.${await hashOf(database)}.mdb`))
    syncFolder(this.folder)
  }

  private async write(schema: number, bytes: number, copy: Write): Promise<void> {
    const scratch = join(this.folder, COPYING)
    try {
      remove(scratch)
      this.makeRoom(bytes)
      await writeWhole(scratch, copy)
      renameSync(scratch, join(this.folder, `schema-${schema}.${await hashOf(scratch)}.mdb`))
      syncFolder(this.folder)
    } finally {
      remove(scratch, `${scratch}-lock`)
    }
  }

  /** What was put aside goes first, then the copies, the oldest first: none is newer than the database. What it only stands in for stays. */
  private makeRoom(bytes: number): void {
    const copies = this.copies().map(({ file }) => file)
    const disposable = [...this.replaced.asides(), ...copies.reverse()]
    while (this.free() < bytes + MARGIN_BYTES) {
      const file = disposable.shift()
      if (file === undefined) throw new Error(`it needs ${bytes + MARGIN_BYTES} bytes, ${this.free()} are free`)
      remove(file)
    }
  }

  private free(): number {
    const { bavail, bsize } = statfsSync(this.folder)
    return bavail * bsize
  }

  /** Those of the highest schema first. */
  private copies(): Copy[] {
    const copies = namesIn(this.folder).flatMap((name) => {
      const [, schema, sha256] = COPY.exec(name) ?? []
      return schema && sha256 ? { schema: Number(schema), sha256, file: join(this.folder, name) } : []
    })
    return copies.sort((a, b) => b.schema - a.schema)
  }

  private remove(which: (copy: Copy) => boolean): void {
    remove(
      ...this.copies()
        .filter(which)
        .map(({ file }) => file),
    )
  }
}

function newerThan(schema: number, newer: number): string {
  return `the database has schema version ${newer}, this release knows ${schema} at most`
}

async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

async function writeWhole(file: string, write: Write): Promise<void> {
  await write(file)
  remove(`${file}-lock`)
  chmodSync(file, 0o600)
  syncFile(file)
}

function syncFile(file: string): void {
  const fd = openSync(file, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
