/** One upload: a file without a place until it is whole, which then takes its name in one step. */
import { randomUUID } from 'node:crypto'
import { closeSync, constants, linkSync, openSync, renameSync, unlinkSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { ApiError, Conflict } from '../errors.ts'
import type { Share, Space } from './space.ts'
import { at, type Descriptor, type Folder, isAbsent } from './tree.ts'

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
/** What `link` says on file systems without hard links, such as vfat. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])

export class Upload {
  private readonly name = randomUUID()
  private file: FileHandle | undefined
  private gained = 0

  constructor(
    /** Where it lies until then; closed with the upload. */
    private readonly folder: Descriptor,
    private readonly space: Space,
    private readonly share: Share,
  ) {}

  get size(): number {
    return this.share.written
  }

  async open(): Promise<void> {
    this.file = await full(open(at(this.folder, this.name), NEW_FILE, 0o640))
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (!this.file) throw new Error('the upload is over')
    this.space.grow(this.share, bytes.length)
    for (let done = 0; done < bytes.length; ) {
      done += (await full(this.file.write(bytes, done, bytes.length - done))).bytesWritten
    }
  }

  /** Makes the content durable, before it gets its name. */
  async seal(): Promise<void> {
    if (!this.file) throw new Error('the upload is over')
    await full(this.file.sync())
    await this.file.close()
    this.file = undefined
  }

  /** CONFLICT where the name is taken, however closely before. */
  place(target: Folder, name: string): void {
    placing(() => this.takeName(target, name), name)
    this.gained = this.size
  }

  /** Puts the file in the place of another one, of `size` bytes: readers find the old or the new one, whole. */
  replace(target: Folder, name: string, size: number): void {
    placing(() => renameSync(at(this.folder, this.name), at(target, name)), name)
    this.gained = this.size - size
  }

  private takeName(target: Folder, name: string): void {
    try {
      linkSync(at(this.folder, this.name), at(target, name))
    } catch (error) {
      if (!NO_LINKS.has((error as NodeJS.ErrnoException).code ?? '')) throw error
      this.claim(target, name)
    }
  }

  /** Without hard links: an empty file of our own takes the name, if nothing has it, and is replaced. */
  private claim(target: Folder, name: string): void {
    const path = at(target, name)
    closeSync(openSync(path, NEW_FILE, 0o640))
    try {
      renameSync(at(this.folder, this.name), path)
    } catch (error) {
      unlinkSync(path)
      throw error
    }
  }

  /** In every case the last call: what did not get a name leaves nothing. */
  async end(): Promise<void> {
    const { file } = this
    this.file = undefined
    try {
      await file?.close()
      this.dropName()
    } finally {
      // Also of a disk that fails: else its promised space would never be free again.
      this.space.release(this.share, this.gained)
      this.folder.close()
    }
  }

  private dropName(): void {
    try {
      unlinkSync(at(this.folder, this.name))
    } catch (error) {
      if (!isAbsent(error)) throw error
    }
  }
}

function placing(step: () => void, name: string): void {
  try {
    step()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' || code === 'EISDIR' || code === 'ENOTEMPTY')
      throw new Conflict('There is a file of that name already', name)
    if (code === 'EXDEV') throw new Conflict('That folder lies on another disk', name)
    throw fullDisk(error)
  }
}

/** A disk that fills up meanwhile is told as such. */
export async function full<T>(step: Promise<T>): Promise<T> {
  try {
    return await step
  } catch (error) {
    throw fullDisk(error)
  }
}

/** The error itself where it is another one. */
export function fullDisk(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOSPC' || code === 'EDQUOT' ? new ApiError('INSUFFICIENT_STORAGE', 'The disk is full') : error
}
