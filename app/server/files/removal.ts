/** Deletes what lies in a folder: by descriptor, links and oddities as themselves, never what they point to. */
import { constants } from 'node:fs'
import { opendir, rmdir, unlink } from 'node:fs/promises'
import { Conflict } from '../errors.ts'
import { at, Descriptor, type Folder, isAbsent } from './tree.ts'

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
/** Each level holds a descriptor. */
const DEEPEST = 200
const PASSES = 4

/** Names removed in one turn: some 15 ms, so that others wait no longer than that. */
const BATCH = 64

export interface Removal {
  /** Before a file goes, by the components below the storage; throwing stops the rest. */
  readonly before: (parts: readonly string[]) => void
  readonly after: (parts: readonly string[]) => void
  /** Each batch goes while nobody else gives or takes names; throwing instead stops the rest. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>
}

/** The folder itself stays. */
export async function empty(folder: Folder, parts: readonly string[], removal: Removal): Promise<void> {
  if (parts.length > DEEPEST) throw new Conflict('The folder is too deep to be deleted', `${DEEPEST} folders`)
  // What a file system leaves out because others go meanwhile is met the next time.
  for (let pass = 0; pass < PASSES; pass++) if (!(await emptyOnce(folder, parts, removal))) return
}

/** False: there was nothing. */
async function emptyOnce(folder: Folder, parts: readonly string[], removal: Removal): Promise<boolean> {
  let found = false
  let batch: Buffer[] = []
  const remove = async () => {
    const names = batch
    batch = []
    const folders = await removal.inTurn(() => unlinkAll(folder, parts, names, removal))
    for (const name of folders) await removeFolder(pathOf(folder, name), [...parts, name.toString()], removal)
  }
  // Names as bytes: what is no UTF-8 has to go as well. A few at a time: all of a large folder would hold up the event loop.
  const names = await opendir(at(folder), { encoding: 'buffer' as BufferEncoding, bufferSize: 512 })
  for await (const { name } of names) {
    found = true
    batch.push(name as unknown as Buffer)
    if (batch.length === BATCH) await remove()
  }
  if (batch.length > 0) await remove()
  return found
}

/** Those that are folders stay, and are the answer. */
async function unlinkAll(
  folder: Folder,
  parts: readonly string[],
  names: readonly Buffer[],
  { before, after }: Removal,
): Promise<Buffer[]> {
  const folders: Buffer[] = []
  for (const name of names) {
    const own = [...parts, name.toString()]
    before(own)
    if (await unlinked(pathOf(folder, name))) after(own)
    else folders.push(name)
  }
  return folders
}

function pathOf(folder: Folder, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${at(folder)}/`), name])
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

async function removeFolder(path: Buffer, parts: readonly string[], removal: Removal): Promise<void> {
  let folder: Descriptor
  try {
    folder = Descriptor.open(path, FOLDER)
  } catch (error) {
    if (isAbsent(error)) return
    throw error
  }
  try {
    await empty(folder, parts, removal)
  } finally {
    folder.close()
  }
  await removal.inTurn(() => removeEmpty(path))
}

export async function removeEmpty(path: string | Buffer): Promise<void> {
  try {
    await rmdir(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // Gone, and perhaps something else has the name by now.
    if (code === 'ENOENT' || code === 'ENOTDIR') return
    if (code === 'ENOTEMPTY' || code === 'EEXIST') throw new Conflict('The folder was filled again meanwhile')
    if (code === 'EBUSY') throw new Conflict('A disk is mounted there')
    throw error
  }
}
