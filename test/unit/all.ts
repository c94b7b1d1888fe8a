import { together } from '../support/together.ts'

await together(import.meta.dirname)
