/**
 * A program: starts the store of a release (`dying-release.ts FOLDER SCHEMAS N`), confirms it with `accept` behind that, and kills itself with SIGKILL before the Nth thing that it does to
 * files, or to an entry within a migration. Exits 0 where it does less than that.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { release } from './releases.ts'

const CHANGING = ['chmodSync', 'fsyncSync', 'linkSync', 'mkdirSync', 'openSync', 'renameSync', 'rmSync'] as const
const [folder = '', schemas = '', last = '', accept] = process.argv.slice(2)
let left = Number(last)

function step(): void {
  left -= 1
  if (left === 0) process.kill(process.pid, 'SIGKILL')
}

const store = release(folder, Number(schemas), { step })
for (const name of CHANGING) {
  const real = fs[name] as (...args: unknown[]) => unknown
  Object.assign(fs, {
    [name]: (...args: unknown[]) => {
      step()
      return real(...args)
    },
  })
}
// Also for what has imported them by name.
syncBuiltinESMExports()
await store.start()
if (accept !== undefined) store.accept()
await store.stop()
