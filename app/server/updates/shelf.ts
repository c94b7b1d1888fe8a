/** Bundles that lie here: those uploaded, in a folder of ours, and those on mounted media. What RAUC says of each is remembered. */
import { randomUUID } from 'node:crypto'
import { type Dirent, renameSync, rmSync, type Stats, statSync } from 'node:fs'
import { type FileHandle, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError, Conflict, InvalidRequest, NotFound } from '../errors.ts'
import { full, sanitiseStem } from '../files/index.ts'
import { type BundleAnswer, diskSpace, prepareFolder, syncFolder } from '../platform/index.ts'
import { parseBundleInfo, reasonOf } from './bundle.ts'
import { MAX_BUNDLE_BYTES } from './index-file.ts'
import type { Candidate } from './judge.ts'

const SUFFIX = '.raucb'
/** What is on its way here, by upload or download. */
const SCRATCH = '.incoming-'
const MAX_UPLOADED = 3
const MAX_MEDIA = 16
const MAX_PER_MEDIUM = 16
/** Left to the recordings and the database. */
const RESERVE_BYTES = 64 * 1024 * 1024
const CHECK_EVERY_BYTES = 16 * 1024 * 1024
/** As the system service takes them. */
const PLAIN_PATH = /^[A-Za-z0-9._:,/=+@%-]{1,255}$/

export interface Bundle extends Candidate {
  /** `upload:NAME` or `media:MEDIUM/NAME`. */
  readonly id: string
  readonly source: 'upload' | 'media'
  readonly path: string
  readonly size_bytes: number
  readonly build: string | null
  readonly description: string | null
}

type Inspected = Omit<Bundle, 'id' | 'source' | 'path' | 'size_bytes'>

export class Shelf {
  /** By path, of those that RAUC trusts or is just looking into; good as long as the file is the same one. */
  private readonly inspected = new Map<string, { readonly file: string; readonly result: Promise<Inspected> }>()
  private receiving = false
  private readonly pinned = new Set<string>()
  private turn: Promise<unknown> = Promise.resolve()

  constructor(
    private readonly folder: string,
    private readonly mediaRoot: string,
    private readonly inspect: (file: string) => Promise<BundleAnswer>,
  ) {}

  /** Also removes what an earlier run left half way. */
  async start(): Promise<void> {
    prepareFolder(this.folder)
    for (const name of await readdir(this.folder)) if (name.startsWith(SCRATCH)) rmSync(join(this.folder, name), { force: true })
  }

  async list(): Promise<Bundle[]> {
    const found: Promise<Bundle | null>[] = []
    for (const name of await bundlesIn(this.folder, MAX_UPLOADED + 1))
      found.push(this.describe(`upload:${name}`, 'upload', join(this.folder, name)))
    for (const medium of await foldersIn(this.mediaRoot)) {
      const folder = join(this.mediaRoot, medium)
      for (const name of await bundlesIn(folder, MAX_PER_MEDIUM))
        found.push(this.describe(`media:${medium}/${name}`, 'media', join(folder, name)))
    }
    const bundles = (await Promise.all(found)).filter((bundle) => bundle !== null)
    const paths = new Set(bundles.map(({ path }) => path))
    for (const path of this.inspected.keys()) if (!paths.has(path)) this.inspected.delete(path)
    return bundles
  }

  /** What lies at this path, which nobody lists: a finished download. */
  async look(path: string): Promise<Inspected> {
    return this.inspection(path)
  }

  /** What it is by now; null where it has gone. */
  lookAgain({ id, source, path }: Bundle): Promise<Bundle | null> {
    return this.describe(id, source, path)
  }

  /** A name for something on its way; nothing is there yet. */
  scratch(): string {
    return join(this.folder, `${SCRATCH}${randomUUID()}${SUFFIX}`)
  }

  /** Throws INSUFFICIENT_STORAGE unless so many bytes more fit beside everything else. */
  checkSpace(bytes: number): void {
    const free = diskSpace(this.folder).available - RESERVE_BYTES
    if (free < bytes)
      throw new ApiError(
        'INSUFFICIENT_STORAGE',
        'There is too little space for the bundle',
        `${bytes} bytes needed, ${Math.max(0, free)} free`,
      )
  }

  /** Nobody replaces or removes this file until the returned function is called. */
  pin(path: string): () => void {
    this.pinned.add(path)
    return () => void this.pinned.delete(path)
  }

  /** One at a time. `announced`: the bytes of the whole body, where the client says. */
  async receive(filename: string, announced: number | null): Promise<Incoming> {
    const name = uploadName(filename)
    if (this.receiving) throw new Conflict('Another bundle is being uploaded', 'upload')
    this.checkSpace(announced ?? 0)
    this.receiving = true
    try {
      return await Incoming.open(this, name)
    } catch (error) {
      this.receiving = false
      throw error
    }
  }

  /** An upload is whole: it takes its name, and the oldest one goes where there are too many. */
  async place(scratch: string, name: string): Promise<Bundle> {
    const path = join(this.folder, name)
    if (this.pinned.has(path)) throw new Conflict('This bundle is being installed', name)
    renameSync(scratch, path)
    const names = await bundlesIn(this.folder, Number.POSITIVE_INFINITY)
    const free = names.filter((other) => other !== name && !this.pinned.has(join(this.folder, other)))
    const oldest = free.sort((a, b) => this.changed(a) - this.changed(b))
    for (const old of oldest.slice(0, Math.max(0, names.length - MAX_UPLOADED))) rmSync(join(this.folder, old), { force: true })
    syncFolder(this.folder)
    const bundle = await this.describe(`upload:${name}`, 'upload', path)
    if (!bundle) throw new Conflict('The bundle has been removed meanwhile', name)
    return bundle
  }

  received(): void {
    this.receiving = false
  }

  /** One that was uploaded. */
  async remove(id: string): Promise<void> {
    const name = (await bundlesIn(this.folder, Number.POSITIVE_INFINITY)).find((one) => `upload:${one}` === id)
    if (name === undefined) throw new NotFound(`update ${id}`)
    const path = join(this.folder, name)
    if (this.pinned.has(path)) throw new Conflict('This bundle is being installed', name)
    rmSync(path, { force: true })
    syncFolder(this.folder)
  }

  private changed(name: string): number {
    return statSync(join(this.folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0
  }

  /** Null where it has gone. */
  private async describe(id: string, source: Bundle['source'], path: string): Promise<Bundle | null> {
    const stats = statsOf(path)
    if (!stats?.isFile()) return null
    const inspected = PLAIN_PATH.test(path)
      ? await this.inspection(path)
      : { ...NOTHING, valid: false, problem: 'its name has characters other than letters, digits, dots, - and _' }
    return { id, source, path, size_bytes: stats.size, ...inspected }
  }

  private inspection(path: string): Promise<Inspected> {
    const { ino, size, mtimeNs } = statSync(path, { bigint: true })
    const file = `${ino} ${size} ${mtimeNs}`
    const known = this.inspected.get(path)
    if (known?.file === file) return known.result
    // One rauc at a time, however many bundles a medium holds.
    const result = this.turn.then(() => this.inspect(path)).then(judged)
    this.turn = result.catch(() => undefined)
    this.inspected.set(path, { file, result })
    // A refusal is asked for again: a clock that was wrong then may be right now.
    const forget = () => void (this.inspected.get(path)?.result === result && this.inspected.delete(path))
    result.then(({ valid }) => valid === true || forget(), forget)
    return result
  }
}

/** One upload on its way. `end` is in every case the last call; what was not finished leaves nothing. */
export class Incoming {
  private size = 0
  private checkedAt = 0

  private constructor(
    private readonly shelf: Shelf,
    private readonly name: string,
    private readonly scratch: string,
    private file: FileHandle | null,
  ) {}

  static async open(shelf: Shelf, name: string): Promise<Incoming> {
    const scratch = shelf.scratch()
    return new Incoming(shelf, name, scratch, await full(createBundle(scratch)))
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (!this.file) throw new Error('the upload is over')
    this.size += bytes.length
    if (this.size > MAX_BUNDLE_BYTES)
      throw new ApiError('PAYLOAD_TOO_LARGE', 'The bundle is too large', `limit ${MAX_BUNDLE_BYTES} bytes`)
    if (this.size - this.checkedAt >= CHECK_EVERY_BYTES) {
      this.checkedAt = this.size
      this.shelf.checkSpace(0)
    }
    for (let done = 0; done < bytes.length; ) done += (await full(this.file.write(bytes, done, bytes.length - done))).bytesWritten
  }

  async finish(): Promise<Bundle> {
    if (!this.file) throw new Error('the upload is over')
    await full(this.file.sync())
    await this.file.close()
    this.file = null
    return this.shelf.place(this.scratch, this.name)
  }

  async end(): Promise<void> {
    const { file } = this
    this.file = null
    try {
      await file?.close()
      rmSync(this.scratch, { force: true })
    } finally {
      this.shelf.received()
    }
  }
}

/** RAUC makes a bundle that it installs root's own: whoever sent it must be able to read it afterwards. The folder keeps others out. */
export async function createBundle(file: string): Promise<FileHandle> {
  const handle = await open(file, 'wx', 0o644)
  await handle.chmod(0o644)
  return handle
}

const NOTHING = { version: null, compatible: null, build: null, description: null }

function judged(answer: BundleAnswer): Inspected {
  if (answer.kind === 'unknown') return { ...NOTHING, valid: null, problem: 'this machine has no rauc to look into it' }
  if (answer.kind === 'refused') return { ...NOTHING, valid: false, problem: reasonOf(answer.output) }
  const info = parseBundleInfo(answer.output)
  return info
    ? { ...info, valid: true, problem: null }
    : { ...NOTHING, valid: false, problem: 'rauc does not say for which device' }
}

/** A name without a folder, of letters that every file system and the system service take. */
export function uploadName(filename: string): string {
  const stem = filename.endsWith(SUFFIX) ? sanitiseStem(filename) : null
  const plain = stem?.replace(/[^A-Za-z0-9._-]+/g, '_').replace(/^[._-]+/, '')
  if (!plain) throw new InvalidRequest('body.file', `Expected a file whose name ends with ${SUFFIX}`)
  return `${plain.slice(0, 100)}${SUFFIX}`
}

/** Undefined also where the medium has been pulled out while it is mounted still: then everything on it is an input/output error. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

async function entries(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true })
  } catch {
    // Not mounted, or pulled out this moment.
    return []
  }
}

async function foldersIn(folder: string): Promise<string[]> {
  return (await entries(folder))
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort()
    .slice(0, MAX_MEDIA)
}

async function bundlesIn(folder: string, limit: number): Promise<string[]> {
  return (await entries(folder))
    .filter((entry) => entry.isFile() && entry.name.endsWith(SUFFIX) && !entry.name.startsWith('.'))
    .map(({ name }) => name)
    .sort()
    .slice(0, limit)
}
