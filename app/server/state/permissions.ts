/** The permission names of the specification, and which role holds which. */
import type { Role } from '../caller.ts'

export type Permission = 'Media_r' | 'Media_rw' | 'Storage_r' | 'Storage_rw'

const VIEWER: readonly Permission[] = ['Media_r', 'Storage_r']
const OPERATOR: readonly Permission[] = [...VIEWER, 'Media_rw', 'Storage_rw']

export const ROLE_PERMISSIONS: Record<Role, readonly Permission[]> = {
  guest: [],
  viewer: VIEWER,
  operator: OPERATOR,
  admin: OPERATOR,
}

/** An empty set allows nobody. */
export function holdsOne(role: Role, needed: readonly Permission[]): boolean {
  return needed.some((permission) => ROLE_PERMISSIONS[role].includes(permission))
}
