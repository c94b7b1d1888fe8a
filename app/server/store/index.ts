export { MIGRATIONS, type Migration } from './migrations.ts'
export { type PutBack, Store } from './store.ts'
export { Table } from './table.ts'
