/** Where the program lies: the media helper lies beside it. */
import { existsSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Node gives the script's path as the second word. The single executable repeats there the name that it was started by, which is no path
 * when the shell has looked it up. The executable's own path is second choice: under an explicit dynamic loader it is that of the loader.
 */
export function programFolder(startedAs: string | undefined, executable: string): string {
  if (startedAs?.includes('/') && existsSync(startedAs)) return dirname(realpathSync(startedAs))
  return dirname(executable)
}
