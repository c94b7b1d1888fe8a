import { join } from 'node:path'
import { together } from '../../support/together.ts'

await together(join(import.meta.dirname, '../recording'))
