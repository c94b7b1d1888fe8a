/** The permission names of the state keys, and which role holds which. */
import { type PermissionName, ROLE_RIGHTS } from '../auth/index.ts'
import type { Role } from '../caller.ts'

export type Permission = Extract<PermissionName, `${'Media' | 'Storage'}_${string}`>

/** An empty set allows nobody. */
export function holdsOne(role: Role, needed: readonly Permission[]): boolean {
  return needed.some((permission) => ROLE_RIGHTS[role].includes(permission))
}
