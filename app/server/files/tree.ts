/**
 * The way down from the storage's folder, one component at a time and by descriptor: whatever happens to the tree meanwhile, no symbolic
 * link is followed and nothing but folders and regular files is ever opened.
 *
 * Names are looked up on the event loop: that takes microseconds, where each step through the thread pool would wait its turn on a busy
 * server. Contents, and what waits for the disk, go through the pool.
 */
import { closeSync, constants, fstatSync, fsync as fsyncWithCallback, openSync, type Stats } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { promisify } from 'node:util'
import { ApiError, unreadable } from '../errors.ts'

const fsync = promisify(fsyncWithCallback)

/** A descriptor that names a file without opening it: no device wakes up. Node has no name for it. */
const O_PATH = 0o10000000
const PEEK = O_PATH | constants.O_NOFOLLOW
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES'])

/** An open folder. */
export interface Folder {
  readonly fd: number
}

/** A descriptor of ours. */
export class Descriptor implements Folder {
  constructor(readonly fd: number) {}

  static open(path: string | Buffer, flags: number): Descriptor {
    return new Descriptor(openSync(path, flags))
  }

  close(): void {
    closeSync(this.fd)
  }
}

/** Path of what a descriptor names; followed by `/name`, of what lies in that folder. */
export function at(folder: Folder, name?: string): string {
  const own = `/proc/self/fd/${folder.fd}`
  return name === undefined ? own : `${own}/${name}`
}

export function missing(): ApiError {
  return new ApiError('FILE_NOT_FOUND', 'The file does not exist')
}

/** True for errors that mean no more than that there is no such file. */
export function isAbsent(error: unknown): boolean {
  return ABSENT.has((error as NodeJS.ErrnoException).code ?? '')
}

export interface Found {
  /** Names only (`O_PATH`): the caller closes it. */
  readonly handle: Descriptor
  readonly stats: Stats
  /** As the file system spells it. */
  readonly name: string
}

export class Tree {
  constructor(
    /** May itself be a link to another disk. */
    readonly root: string,
  ) {}

  private openRoot(): Descriptor {
    try {
      return Descriptor.open(this.root, O_PATH | constants.O_DIRECTORY)
    } catch (error) {
      if (!isAbsent(error)) throw error
      throw new ApiError('SERVICE_UNAVAILABLE', 'The storage cannot be reached', 'storage')
    }
  }

  /** `work` gets the folder, open for as long as it takes, and its path as it is really spelled. FILE_NOT_FOUND where there is none. */
  async inFolder<T>(parts: readonly string[], work: (folder: Folder, parts: readonly string[]) => Promise<T>): Promise<T> {
    let folder = this.openRoot()
    try {
      const real: string[] = []
      for (const part of parts) {
        const next = peek(folder, part)
        if (next === null) throw missing()
        folder.close()
        folder = next.handle
        real.push(next.name)
        if (!next.stats.isDirectory()) throw missing()
      }
      return await work(folder, real)
    } finally {
      folder.close()
    }
  }
}

/** What lies under a name, without opening it; null where nothing does. Names that are the same text to a reader find each other. */
export function peek(folder: Folder, name: string): Found | null {
  for (const spelling of new Set([name, name.normalize('NFC')])) {
    let handle: Descriptor
    try {
      handle = Descriptor.open(at(folder, spelling), PEEK)
    } catch (error) {
      if (isAbsent(error)) continue
      throw error
    }
    try {
      return { handle, stats: fstatSync(handle.fd), name: spelling }
    } catch (error) {
      handle.close()
      throw error
    }
  }
  return null
}

/** Opens exactly what was found, which must be a regular file. */
export async function reopen(found: Found): Promise<FileHandle> {
  if (!found.stats.isFile()) throw missing()
  try {
    return await open(at(found.handle), constants.O_RDONLY | constants.O_NOCTTY)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw code === 'EACCES' || code === 'EPERM' ? unreadable() : error
  }
}

/** Opened anew, for a descriptor that only names cannot be synced. */
export function openNames(folder: Folder): Descriptor {
  return Descriptor.open(`${at(folder)}/.`, constants.O_RDONLY | constants.O_DIRECTORY)
}

/** Makes new names in a folder survive a power cut, and closes `names`. */
export async function syncNames(names: Descriptor): Promise<void> {
  try {
    await fsync(names.fd)
  } finally {
    names.close()
  }
}
