/** The secret that Digest is computed from (RFC 7616, 3.4.2): it stands for the password, in this realm alone. */
import { createHash } from 'node:crypto'

export const REALM = 'camera'

export type Ha1Algorithm = 'MD5' | 'SHA-256'

export function digestHash(algorithm: Ha1Algorithm, text: string): string {
  return createHash(algorithm === 'MD5' ? 'md5' : 'sha256')
    .update(text)
    .digest('hex')
}

export function ha1(algorithm: Ha1Algorithm, username: string, password: string): string {
  return digestHash(algorithm, `${username}:${REALM}:${password}`)
}
