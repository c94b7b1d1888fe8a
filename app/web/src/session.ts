/** Who is signed in, for display and for what to offer; the server decides what is allowed. */
import type { Role } from './types.ts'

export interface User {
  readonly username: string
  readonly role: Role
}

/** The answer of `/api/auth/session`. */
export interface SessionInfo extends User {
  readonly must_change_password: boolean
}

export const NOBODY: User = { username: '', role: 'guest' }

/** Guests see the picture and the status, nothing else. */
export function mayWatch({ role }: User): boolean {
  return role !== 'guest'
}

/** Recording, stills, picture settings, deletion. */
export function mayControl({ role }: User): boolean {
  return role === 'operator' || role === 'admin'
}
