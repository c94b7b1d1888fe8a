/** The recordings' files as they lie in a folder. */
import type { Dirent } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { posix } from 'node:path'
import type { DeviceStorage } from '../files/index.ts'

const EXTENSION = /\.(mp4|avi)$/
const MAX_DEPTH = 8

/** Device paths of all recordings below a folder; hidden names are left out, links are not followed, a folder that is not there is empty. */
export async function* mediaFiles(storage: DeviceStorage, folder: string, depth = MAX_DEPTH): AsyncGenerator<string> {
  const folders: string[] = []
  for await (const { name, entry } of entries(storage.hostPath(folder))) {
    if (name.startsWith('.')) continue
    if (entry.isDirectory()) folders.push(name)
    else if (entry.isFile() && EXTENSION.test(name)) yield posix.join(folder, name)
  }
  if (depth === 0) return
  for (const name of folders.sort()) yield* mediaFiles(storage, posix.join(folder, name), depth - 1)
}

async function* entries(folder: string): AsyncGenerator<{ name: string; entry: Dirent }> {
  try {
    for await (const entry of await opendir(folder)) yield { name: entry.name, entry }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
