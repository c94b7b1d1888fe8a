export { MIGRATIONS, type Migration } from './migrations.ts'
export { Store } from './store.ts'
export { Table } from './table.ts'
