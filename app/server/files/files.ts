/** Files on the device's storage, as users see them: upload, listing, download, delete. Nothing outside the storage's folder is touched or named. */
import { constants, mkdirSync, rmSync, unlinkSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { ApiError, Conflict, errorText, InvalidRequest, PermissionDenied } from '../errors.ts'
import type { Logger } from '../log.ts'
import { Turnstile } from '../turnstile.ts'
import { type Listing, type ListQuery, listFolder, mimeType } from './listing.ts'
import { checkName, devicePath, isReserved, MAX_DEPTH, parsePath, UPLOAD_FOLDER } from './paths.ts'
import { empty, type Removal, removeEmpty } from './removal.ts'
import { Space } from './space.ts'
import type { DeviceStorage } from './storage.ts'
import { at, Descriptor, type Folder, type Found, isAbsent, missing, openNames, peek, reopen, syncNames, Tree } from './tree.ts'
import { fullDisk, Upload } from './upload.ts'
import { walk } from './walk.ts'

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
/** Each may look at 100,000 entries. */
const LISTINGS_AT_ONCE = 4
const LISTINGS_WAITING = 64
/** To give a file its place. */
const TRIES = 3

/** What the files must know of recordings. */
export interface RecordedFiles {
  /** The recording that a file belongs to, by device path. */
  ownerOf(path: string): { readonly id: number; readonly camera: number; readonly state: string } | undefined
  /** Those that are being written. */
  running(): readonly { readonly parts: readonly { readonly path: string }[] }[]
  /** The file is about to be deleted: should a crash come between, it is forgotten at the next start. */
  noteFile(path: string): void
  /** The file has been deleted. */
  forgetFile(path: string): void
}

export interface FileLimits {
  readonly maxUploadBytes: number
  /** 0: none. */
  readonly quotaBytes: number
}

/** Who asks: accounts may be limited to some cameras, and so to their recordings. */
export interface Viewer {
  readonly cameras: readonly number[] | null
}

export interface StoredFile {
  readonly name: string
  readonly mime: string
  open(): Promise<FileHandle>
}

export class Files implements Component {
  private readonly tree: Tree
  private readonly space: Space
  /** Files get and lose their names one after the other, or a batch of them. */
  private turn: Promise<unknown> = Promise.resolve()
  private stopped = false
  private readonly listings = new Turnstile(LISTINGS_AT_ONCE, LISTINGS_WAITING, () => {
    return new ApiError('SERVICE_UNAVAILABLE', 'Too many listings are being made', 'files', { 'Retry-After': '1' })
  })

  constructor(
    storage: DeviceStorage,
    private readonly recordings: RecordedFiles,
    private readonly bus: Bus,
    private readonly log: Logger,
    readonly limits: () => FileLimits,
  ) {
    this.tree = new Tree(storage.hostRoot)
    this.space = new Space(storage, this.tree, () => limits().quotaBytes)
  }

  /** What counts against the quota: all files of `/media/data`; 0 without a quota. */
  usedBytes(): Promise<number> {
    return this.space.usedBytes()
  }

  /** What a crash has left of uploads, and of exports, goes. A storage that cannot be written to is no reason not to start. */
  async start(): Promise<void> {
    this.stopped = false
    try {
      await this.sweep()
    } catch (error) {
      this.log.error({ error: errorText(error) }, 'unfinished uploads cannot be removed')
    }
  }

  async stop(): Promise<void> {
    this.stopped = true
    await this.turn
  }

  async list(viewer: Viewer, path: string, field: string, query: Omit<ListQuery, 'sees'>): Promise<Listing> {
    const parts = parsePath(path, field)
    if (query.filter !== undefined && !/^\.?[^./]{1,32}$/.test(query.filter)) {
      throw new InvalidRequest('query.filter', 'An extension such as .avi is expected')
    }
    return this.listings.pass(() => listFolder(this.tree, parts, { ...query, sees: (file) => this.mayRead(viewer, file) }))
  }

  /** The file is opened when it is sent; whatever its path leads to by then, it is a regular file of the storage. */
  find(viewer: Viewer, path: string, field: string): StoredFile {
    const parts = parsePath(path, field)
    const name = parts.at(-1)
    if (name === undefined) throw new InvalidRequest(field, 'This is a folder: list it with /files?path=')
    return { name, mime: mimeType(name), open: () => this.openFile(viewer, parts, name, field) }
  }

  /** `expected`: the length of the request, where it is known. The caller ends the upload in every case. */
  async receive(expected: number | null): Promise<Upload> {
    const share = await this.space.admit(expected)
    let folder: Descriptor | undefined
    try {
      folder = await this.openUploads()
      const upload = new Upload(folder, this.space, share)
      await upload.open()
      return upload
    } catch (error) {
      folder?.close()
      this.space.release(share, 0)
      throw error
    }
  }

  /** Checked as soon as it is known, so that no bytes come in vain. */
  checkFilename(name: string): void {
    checkName(name.normalize('NFC'), 'body.file')
  }

  async publish(
    upload: Upload,
    target: { readonly folder: string; readonly filename: string; readonly overwrite: boolean },
  ): Promise<{ filename: string; path: string; size: number }> {
    this.checkFilename(target.filename)
    const name = target.filename.normalize('NFC')
    const folder = parsePath(target.folder.normalize('NFC'), 'body.path')
    if (folder.length >= MAX_DEPTH) throw new InvalidRequest('body.path', `The path is deeper than ${MAX_DEPTH} folders`)
    if (folder.length === 0 && isReserved(name)) throw new InvalidRequest('body.file', 'This name belongs to the server')
    await upload.seal()
    const { path, names } = await this.inTurn(() =>
      again(TRIES, () =>
        this.inNewFolder(folder, async (handle, real) => {
          this.give(upload, handle, [...real, name], target.overwrite)
          return { path: devicePath([...real, name]), names: openNames(handle) }
        }),
      ),
    )
    await syncNames(names)
    const result = { filename: name, path, size: upload.size }
    this.bus.publish('file', 'uploaded', { ...result })
    return result
  }

  /** A large folder goes in batches, between which others have their turn; `signal` ends it there. */
  async remove(viewer: Viewer, path: string, field: string, recursive: boolean, signal?: AbortSignal): Promise<void> {
    const parts = parsePath(path, field)
    const name = parts.at(-1)
    if (name === undefined) throw new InvalidRequest(field, 'The storage itself cannot be deleted')
    await this.tree.inFolder(parts.slice(0, -1), async (folder, real) => {
      const found = peek(folder, name)
      if (found === null) throw missing()
      try {
        const own = [...real, found.name]
        const camera = this.recordings.ownerOf(devicePath(own))?.camera
        if (found.stats.isDirectory()) await this.removeFolder(viewer, folder, found, own, recursive, signal)
        else if (found.stats.isFile()) await this.inTurn(async () => this.removeFile(viewer, folder, own))
        else throw missing()
        await syncNames(openNames(folder))
        const told = { path: devicePath(own), recursive: found.stats.isDirectory() }
        // Who may not see the camera does not hear of its recordings.
        this.bus.publish('file', 'deleted', camera === undefined ? told : { ...told, camera })
      } finally {
        this.space.outdate()
        found.handle.close()
      }
    })
  }

  /** For whoever gives a file a name that a user may have given up just now: nobody else does meanwhile. */
  async inTurn<T>(work: () => Promise<T>): Promise<T> {
    // Also between the batches of a delete: the catalogue closes behind us.
    if (this.stopped) throw new ApiError('SERVICE_UNAVAILABLE', 'The server is stopping')
    const turn = this.turn.then(work)
    this.turn = turn.catch(() => undefined)
    return turn
  }

  private async sweep(): Promise<void> {
    let left = 0
    const folder = await this.openUploads()
    try {
      await empty(folder, [], { before: () => {}, after: () => left++, inTurn: (work) => work() })
    } finally {
      folder.close()
    }
    if (left > 0) this.log.warn({ files: left }, 'unfinished uploads removed')
  }

  /** Made where it is missing; whatever else has that name goes. */
  private openUploads(): Promise<Descriptor> {
    return this.tree.inFolder([], async (root) => {
      const path = at(root, UPLOAD_FOLDER)
      try {
        return Descriptor.open(path, FOLDER)
      } catch (error) {
        if (!isAbsent(error)) throw error
        rmSync(path, { force: true })
        make(path, 0o700)
        return Descriptor.open(path, FOLDER)
      }
    })
  }

  private async openFile(viewer: Viewer, parts: readonly string[], name: string, field: string): Promise<FileHandle> {
    return this.tree.inFolder(parts.slice(0, -1), async (folder, real) => {
      const found = peek(folder, name)
      if (found === null) throw missing()
      try {
        if (found.stats.isDirectory()) throw new InvalidRequest(field, 'This is a folder: list it with /files?path=')
        const path = devicePath([...real, found.name])
        this.demandOwn(viewer, path)
        this.demandFinished(path)
        return await reopen(found)
      } finally {
        found.handle.close()
      }
    })
  }

  /** Gives the upload its name: over a file that nobody owns, or where nothing is. */
  private give(upload: Upload, folder: Folder, parts: readonly string[], overwrite: boolean): void {
    const name = parts.at(-1) ?? ''
    const path = devicePath(parts)
    this.demandFinished(path)
    // The next part of a running recording will need its name.
    this.demandFinished(path.replace(/\.part\d+(?=\.[^./]+$)/, ''))
    if (this.recordings.ownerOf(path)) throw new Conflict('This is the file of a recording', path)
    const existing = peek(folder, name)
    existing?.handle.close()
    // Only over what was seen to be a plain file: a recording that begins meanwhile avoids its name.
    if (overwrite && existing?.stats.isFile()) upload.replace(folder, name, existing.stats.size)
    else if (existing)
      throw new Conflict(existing.stats.isDirectory() ? 'There is a folder of that name' : 'The file exists already', path)
    else upload.place(folder, name)
  }

  /** The folder, made where it is missing. */
  private async inNewFolder<T>(
    parts: readonly string[],
    work: (folder: Folder, parts: readonly string[]) => Promise<T>,
  ): Promise<T> {
    for (let depth = 1; depth <= parts.length; depth++) {
      const name = parts[depth - 1] ?? ''
      await this.tree.inFolder(parts.slice(0, depth - 1), async (folder) => {
        const found = peek(folder, name)
        found?.handle.close()
        if (found?.stats.isDirectory()) return
        if (found) throw new Conflict('A file is in the way of this folder', devicePath(parts.slice(0, depth)))
        make(at(folder, name), 0o750)
        await syncNames(openNames(folder))
      })
    }
    return this.tree.inFolder(parts, work)
  }

  private removeFile(viewer: Viewer, folder: Folder, parts: readonly string[]): void {
    const path = devicePath(parts)
    this.demandOwn(viewer, path)
    this.demandFinished(path)
    this.recordings.noteFile(path)
    try {
      unlinkSync(at(folder, parts.at(-1) ?? ''))
    } catch (error) {
      // The retention, or whoever deletes recordings, was quicker.
      throw isAbsent(error) || (error as NodeJS.ErrnoException).code === 'EISDIR' ? missing() : error
    }
    this.recordings.forgetFile(path)
  }

  private async removeFolder(
    viewer: Viewer,
    folder: Folder,
    found: Found,
    parts: readonly string[],
    recursive: boolean,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (!recursive) throw new InvalidRequest('query.recursive', 'A folder is only deleted with recursive=true')
    const inside = `${devicePath(parts)}/`
    const running = this.recordings.running().flatMap((row) => row.parts.map((part) => part.path))
    for (const path of running) if (path.startsWith(inside)) throw inProgress(path)
    const heard = () => {
      if (signal?.aborted) throw new InvalidRequest('request', 'The client has gone')
    }
    if (viewer.cameras !== null) {
      const options = { recursive: true, ...(signal ? { signal } : {}) }
      for await (const entry of walk(found.handle, parts, options)) this.demandOwn(viewer, devicePath(entry.parts))
    }
    const removal: Removal = {
      before: (own) => {
        this.demandOwn(viewer, devicePath(own))
        this.demandFinished(devicePath(own))
        this.recordings.noteFile(devicePath(own))
      },
      after: (own) => this.recordings.forgetFile(devicePath(own)),
      inTurn: (work) => {
        heard()
        return this.inTurn(work)
      },
    }
    await empty(found.handle, parts, removal)
    await removal.inTurn(() => removeEmpty(at(folder, found.name)))
  }

  private mayRead({ cameras }: Viewer, path: string): boolean {
    if (cameras === null) return true
    const owner = this.recordings.ownerOf(path)
    return !owner || cameras.includes(owner.camera)
  }

  private demandOwn(viewer: Viewer, path: string): void {
    if (!this.mayRead(viewer, path)) throw new PermissionDenied('the recording of another camera')
  }

  private demandFinished(path: string): void {
    if (this.recordings.ownerOf(path)?.state === 'recording') throw inProgress(path)
  }
}

function inProgress(path: string): ApiError {
  return new ApiError('RECORDING_IN_PROGRESS', 'This recording is still running', path)
}

/** A folder, unless somebody else has just made it. */
function make(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw fullDisk(error)
  }
}

/** The folder may go while a file gets its place in it, by hands that wait for no turn: it is made again then. */
async function again<T>(tries: number, work: () => Promise<T>): Promise<T> {
  for (let left = tries; left > 0; left--) {
    try {
      return await work()
    } catch (error) {
      const gone = (error as NodeJS.ErrnoException).code === 'ENOENT' || (error as ApiError).code === 'FILE_NOT_FOUND'
      if (!gone) throw error
    }
  }
  throw new Conflict('The folder was deleted meanwhile')
}
