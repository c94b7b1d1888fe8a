/** How the database is opened, and its copies. */
import { open, type RootDatabase } from 'lmdb'

const MAP_SIZE = 4 * 1024 ** 3
const MAX_TABLES = 64

export function openEnvironment(file: string): RootDatabase {
  return open({
    path: file,
    mapSize: MAP_SIZE,
    maxDbs: MAX_TABLES,
    encoding: 'json',
    // A commit that has returned must survive a power cut.
    overlappingSync: false,
  })
}
