export { AuditLog, type AuditQuery } from './audit.ts'
export type { AuditEntry } from './chain.ts'
