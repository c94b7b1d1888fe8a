/** All unit tests in one process: to start one for each file would take most of the time. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const names = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
for (const name of names.filter((one) => one.endsWith('.test.ts')).sort()) await import(join(import.meta.dirname, name))
