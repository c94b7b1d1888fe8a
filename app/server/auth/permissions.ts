/**
 * What each role may do, as permission names. `Media_*` and `Storage_*` are the state keys' own; the others name groups of endpoints.
 * `_r` reads, `_rw` reads and changes.
 */
import type { Role } from '../caller.ts'

const GUEST = ['Status_r', 'Image_r'] as const
const VIEWER = [...GUEST, 'Media_r', 'Storage_r'] as const
const OPERATOR = [...VIEWER, 'Media_rw', 'Storage_rw', 'Shares_rw'] as const
const ADMIN = [...OPERATOR, 'Users_rw', 'Network_rw', 'System_rw', 'Maintenance_rw', 'Performance_rw', 'Audit_r'] as const

export type PermissionName = (typeof ADMIN)[number]

export const ROLE_RIGHTS: Readonly<Record<Role, readonly PermissionName[]>> = {
  guest: GUEST,
  viewer: VIEWER,
  operator: OPERATOR,
  admin: ADMIN,
}

export const PERMISSION_NAMES: readonly PermissionName[] = ADMIN
