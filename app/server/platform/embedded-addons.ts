/**
 * The native addons of the single executable. The dynamic loader takes only files, so each addon is written to a memory file system, loaded,
 * and removed at once: what is mapped stays.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getAsset } from 'node:sea'
import { errorText } from '../errors.ts'

/** Maps the file into the process and answers what it exports. */
type Loader = (file: string) => unknown

/** The addon that the executable carries under this name. */
export function embeddedAddon(name: string): unknown {
  return loadThroughFile(name, new Uint8Array(getAsset(name)), unpackFolders(process.env), dynamicLoad)
}

/** Where to unpack, best first. A mount with noexec refuses the mapping; the next one is tried then. */
export function unpackFolders(env: NodeJS.ProcessEnv): string[] {
  // systemd names several, should the unit have asked for several.
  const runtime = env.RUNTIME_DIRECTORY?.split(':')[0]
  return [...(runtime ? [runtime] : []), '/dev/shm', tmpdir()]
}

export function loadThroughFile(name: string, bytes: Uint8Array, folders: readonly string[], load: Loader): unknown {
  const failures: string[] = []
  for (const parent of folders) {
    let folder: string | undefined
    try {
      // 0700: nobody else may put another file in its place.
      folder = mkdtempSync(join(parent, 'camera-addon-'))
      const file = join(folder, name)
      writeFileSync(file, bytes, { mode: 0o500, flag: 'wx' })
      return load(file)
    } catch (error) {
      failures.push(`${parent}: ${errorText(error)}`)
    } finally {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    }
  }
  throw new Error(`the addon ${name} does not load (${failures.join('; ')})`)
}

function dynamicLoad(file: string): unknown {
  const loaded = { exports: {} }
  process.dlopen(loaded, file)
  return loaded.exports
}
