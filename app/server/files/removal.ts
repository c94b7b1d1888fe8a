/** Deletes what lies in a folder: by descriptor, links and oddities as themselves, never what they point to. */
import { constants } from 'node:fs'
import { type FileHandle, open, opendir, rmdir, unlink } from 'node:fs/promises'
import { Conflict } from '../errors.ts'
import { at, isAbsent } from './tree.ts'

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
/** Each level holds a descriptor. */
const DEEPEST = 200
const PASSES = 4

export interface Watcher {
  /** Before a file goes, by the components below the storage; throwing stops the rest. */
  readonly before: (parts: readonly string[]) => void
  readonly after: (parts: readonly string[]) => void
}

/** The folder itself stays. */
export async function empty(folder: FileHandle, parts: readonly string[], watcher: Watcher | null): Promise<void> {
  if (parts.length > DEEPEST) throw new Conflict('The folder is too deep to be deleted', `${DEEPEST} folders`)
  // What a file system leaves out because others go meanwhile is met the next time.
  for (let pass = 0; pass < PASSES; pass++) if (!(await emptyOnce(folder, parts, watcher))) return
}

/** False: there was nothing. */
async function emptyOnce(folder: FileHandle, parts: readonly string[], watcher: Watcher | null): Promise<boolean> {
  let found = false
  // Names as bytes: what is no UTF-8 has to go as well. A few at a time: all of a large folder would hold up the event loop.
  const names = await opendir(at(folder), { encoding: 'buffer' as BufferEncoding, bufferSize: 512 })
  for await (const { name } of names) {
    const raw = name as unknown as Buffer
    found = true
    const own = [...parts, raw.toString()]
    const path = Buffer.concat([Buffer.from(`${at(folder)}/`), raw])
    watcher?.before(own)
    if (await unlinked(path)) watcher?.after(own)
    else await removeFolder(path, own, watcher)
  }
  return found
}

/** False: it is a folder. */
async function unlinked(path: Buffer): Promise<boolean> {
  try {
    await unlink(path)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return true
    if (code === 'EISDIR' || code === 'EPERM') return false
    throw error
  }
}

async function removeFolder(path: Buffer, parts: readonly string[], watcher: Watcher | null): Promise<void> {
  let folder: FileHandle
  try {
    folder = await open(path, FOLDER)
  } catch (error) {
    if (isAbsent(error)) return
    throw error
  }
  try {
    await empty(folder, parts, watcher)
  } finally {
    await folder.close()
  }
  await removeEmpty(path)
}

export async function removeEmpty(path: string | Buffer): Promise<void> {
  try {
    await rmdir(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return
    if (code === 'ENOTEMPTY' || code === 'EEXIST') throw new Conflict('The folder was filled again meanwhile')
    if (code === 'EBUSY') throw new Conflict('A disk is mounted there')
    throw error
  }
}
