export { BACKUP_NAME, Backups, MAX_BACKUP_BYTES, type RestoreReport, type StoredBackup } from './backups.ts'
export type { Part, Prepared } from './part.ts'
