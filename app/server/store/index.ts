export { MIGRATIONS, type Migration } from './migrations.ts'
export type { PutBack } from './put-back.ts'
export { Store } from './store.ts'
export { Table } from './table.ts'
