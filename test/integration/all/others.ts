/** Every folder that has no runner of its own. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { together } from '../../support/together.ts'

const INTEGRATION = join(import.meta.dirname, '..')
/** `api`: most of its tests' time is that of the servers that they start; each file is a process. */
const ELSEWHERE = ['all', 'api', 'recording']

const folders = readdirSync(INTEGRATION, { withFileTypes: true }).filter((entry) => entry.isDirectory())
const names = folders.map(({ name }) => name).filter((name) => !ELSEWHERE.includes(name))
await together(...names.sort().map((name) => join(INTEGRATION, name)))
