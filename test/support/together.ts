/** Many files of tests in one process: to start one for each, and to load all that they import, would take most of the time. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Imports every `*.test.ts` below each of the folders; their tests run one after the other. */
export async function together(...folders: string[]): Promise<void> {
  for (const folder of folders) {
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    for (const name of names.filter((one) => one.endsWith('.test.ts')).sort()) await import(join(folder, name))
  }
}
