/** Key material on the data partition: each key in its own file, readable by the server alone. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { writeFileAtomic } from './files.ts'

/** The key in `file`, made at first use. A file of another length is an error: a key is never silently replaced. */
export function loadOrCreateKey(file: string, bytes: number): Buffer {
  try {
    const key = readFileSync(file)
    if (key.length !== bytes) throw new Error(`${file} holds ${key.length} bytes instead of ${bytes}`)
    return key
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const key = randomBytes(bytes)
  writeFileAtomic(file, key, 0o600)
  return key
}
