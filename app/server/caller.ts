/** Who asks: roles, the caller that authentication establishes, and what it establishes it from. */

/** In rising order: each role may do all that the ones before it may. */
export const ROLES = ['guest', 'viewer', 'operator', 'admin'] as const
export type Role = (typeof ROLES)[number]

/** All that a share link opens. */
export interface ShareScope {
  readonly id: string
  readonly kind: 'still' | 'stream' | 'recording'
  readonly camera: number
  /** The one recording, for that kind. */
  readonly recording: number | null
}

/** Who asks, as the authenticator has established. */
export interface Caller {
  readonly username: string
  readonly role: Role
  /** How the credentials came. A cookie is only believed for writes from the same origin. */
  readonly via: 'bearer' | 'basic' | 'digest' | 'cookie' | 'query'
  /** The session behind a token; absent for Basic, Digest and share links. */
  readonly sessionId?: string
  /** When the session ends, epoch milliseconds; absent without one. */
  readonly expiresAt?: number
  /** The factory password is still in force: only routes with `beforePasswordChange` answer. */
  readonly mustChangePassword: boolean
  /** The cameras that the caller may see and control; null: all. */
  readonly cameras: readonly number[] | null
  /** The link that was followed: nothing but what it shares is allowed, whatever the role says. */
  readonly share?: ShareScope
}

/** Everything in a request that may carry credentials. */
export interface CredentialSource {
  readonly method: string
  readonly url: string
  readonly authorization: string
  readonly cookie: string
  readonly origin: string
  readonly host: string
  /** `token=` of the query. */
  readonly token: string
  readonly address: string
  readonly secure: boolean
}

/** The cookie that a login sets. */
export const SESSION_COOKIE = 'camera_session'

export function seesCamera({ cameras }: Pick<Caller, 'cameras'>, camera: number): boolean {
  return cameras === null || cameras.includes(camera)
}
