/**
 * The ways back over a change of the schema: copies of the database from before it, named by the schema they have and by their SHA-256. When an
 * update is taken back, the old release finds its own copy here. Whatever is cut off, the next start finds the database as it was or as it shall be,
 * whole.
 */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  createReadStream,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { errorText, StartupError } from '../errors.ts'
import { ensureFolder, syncFolder } from '../platform/files.ts'

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

export class SchemaBackups {
  constructor(private readonly folder: string) {}

  /**
   * Keeps what `copy` writes of a database of this schema. Where that fails the server must not start: nothing has been changed yet, and the release
   * before can still run on the database as it is.
   */
  async keep(schema: number, bytes: number, copy: (file: string) => Promise<void>): Promise<void> {
    try {
      ensureFolder(this.folder, 0o700)
      // Of this schema there will be a newer one; those of higher schemas are of updates that were taken back.
      this.remove(...this.copies().flatMap((one) => (one.schema >= schema ? one.file : [])))
      await this.write(schema, bytes, copy)
    } catch (error) {
      throw new StartupError(`the database cannot be copied before its schema ${schema} is changed: ${errorText(error)}`)
    }
    const surplus = this.copies().slice(KEPT)
    this.remove(...surplus.map(({ file }) => file))
  }

  /**
   * Makes the copy of `schema` the database; the one of the schema `newer` is put aside, instead of the one put aside before. Throws where there is no
   * copy or a damaged one, before anything has been changed.
   */
  async putBack(schema: number, newer: number, database: string): Promise<void> {
    const copy = this.copies().find((one) => one.schema === schema)
    if (!copy) throw new StartupError(`${newerThan(schema, newer)}, and there is no copy from before: ${WAY_OUT}`)
    // Damaged ones must not even be opened.
    if ((await hashOf(copy.file)) !== copy.sha256)
      throw new StartupError(`${newerThan(schema, newer)}, and its copy from before is damaged (${copy.file}): ${WAY_OUT}`)
    const scratch = join(this.folder, 'aside.tmp')
    const aside = join(this.folder, `aside-${newer}.mdb`)
    this.remove(scratch, join(this.folder, COPYING))
    linkSync(database, scratch)
    renameSync(scratch, aside)
    // Where both were the same file already, the renaming has done nothing.
    this.remove(scratch)
    syncFolder(this.folder)
    renameSync(copy.file, database)
    syncFolder(dirname(database))
    const asides = this.asides().filter((file) => file !== aside)
    this.remove(...asides)
    syncFolder(this.folder)
  }

  private async write(schema: number, bytes: number, copy: (file: string) => Promise<void>): Promise<void> {
    const scratch = join(this.folder, COPYING)
    try {
      this.remove(scratch)
      this.makeRoom(bytes)
      await copy(scratch)
      chmodSync(scratch, 0o600)
      syncFile(scratch)
      renameSync(scratch, join(this.folder, `schema-${schema}.${await hashOf(scratch)}.mdb`))
      syncFolder(this.folder)
    } finally {
      this.remove(scratch, `${scratch}-lock`)
    }
  }

  /** What was put aside goes first, then the copies, the oldest first: none is newer than the database. */
  private makeRoom(bytes: number): void {
    const copies = this.copies().map(({ file }) => file)
    const disposable = [...this.asides(), ...copies.reverse()]
    while (this.free() < bytes + MARGIN_BYTES) {
      const file = disposable.shift()
      if (file === undefined) throw new Error(`it needs ${bytes + MARGIN_BYTES} bytes, ${this.free()} are free`)
      this.remove(file)
    }
  }

  private free(): number {
    const { bavail, bsize } = statfsSync(this.folder)
    return bavail * bsize
  }

  /** Those of the highest schema first. */
  private copies(): Copy[] {
    const copies = this.names().flatMap((name) => {
      const [, schema, sha256] = COPY.exec(name) ?? []
      return schema && sha256 ? { schema: Number(schema), sha256, file: join(this.folder, name) } : []
    })
    return copies.sort((a, b) => b.schema - a.schema)
  }

  private asides(): string[] {
    const names = this.names().filter((name) => /^aside-\d+\.mdb$/.test(name))
    return names.map((name) => join(this.folder, name))
  }

  private names(): string[] {
    try {
      return readdirSync(this.folder)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw error
    }
  }

  private remove(...files: readonly string[]): void {
    for (const file of files) rmSync(file, { force: true })
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

function syncFile(file: string): void {
  const fd = openSync(file, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
