/**
 * Who is signed in, for display and for what to offer; the server decides what is allowed. Kept for the tab only. A new tab has the cookie but
 * not this: the role is then `unknown`, everything is offered, and the server refuses what is not allowed.
 */
import type { Role } from './types.ts'

export interface User {
  readonly username: string
  readonly role: Role | 'unknown'
}

const KEY = 'camera.user'
export const UNKNOWN_USER: User = { username: '', role: 'unknown' }

export function rememberUser(user: User): void {
  sessionStorage.setItem(KEY, JSON.stringify(user))
}

export function forgetUser(): void {
  sessionStorage.removeItem(KEY)
}

export function rememberedUser(): User {
  try {
    const { username, role } = JSON.parse(sessionStorage.getItem(KEY) ?? '{}') as Partial<User>
    return username && role ? { username, role } : UNKNOWN_USER
  } catch {
    return UNKNOWN_USER
  }
}

/** Guests see the picture and the status, nothing else. */
export function mayWatch({ role }: User): boolean {
  return role !== 'guest'
}

/** Recording, stills, picture settings, deletion. */
export function mayControl({ role }: User): boolean {
  return role === 'operator' || role === 'admin' || role === 'unknown'
}
