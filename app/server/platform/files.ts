/** Files that are whole or not there: temporary file, fsync, rename, fsync of the folder. */
import { accessSync, closeSync, constants, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorText, StartupError } from '../errors.ts'

export function writeFileAtomic(file: string, content: Uint8Array | string, mode = 0o644): void {
  const scratch = `${file}.${process.pid}.tmp`
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  try {
    const fd = openSync(scratch, 'wx', mode)
    try {
      for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(scratch, file)
  } catch (error) {
    rmSync(scratch, { force: true })
    throw error
  }
  syncFolder(dirname(file))
}

/** Makes renames and new names in `folder` survive a power cut. */
export function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Makes `folder` and what is missing above it, each name durable before anything is put into it. */
export function ensureFolder(folder: string, mode = 0o750): void {
  const first = mkdirSync(folder, { recursive: true, mode })
  if (first === undefined) return
  for (let made = folder; made.length >= first.length; made = dirname(made)) syncFolder(dirname(made))
}

/** Makes a folder that only this user may enter; what cannot be used is a `StartupError`. */
export function prepareFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new StartupError(`the folder ${folder} cannot be used: ${errorText(error)}`)
  }
}
