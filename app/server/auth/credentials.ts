/** Reads credentials out of request headers; believes nothing yet. */
import { SESSION_COOKIE } from '../caller.ts'

export function parseBasic(authorization: string): { username: string; password: string } | null {
  const match = /^basic +([A-Za-z0-9+/=_-]{1,1024}) *$/i.exec(authorization)
  if (!match?.[1]) return null
  const text = Buffer.from(match[1], 'base64').toString('utf8')
  const colon = text.indexOf(':')
  return colon < 1 ? null : { username: text.slice(0, colon), password: text.slice(colon + 1) }
}

export function parseBearer(authorization: string): string | null {
  return /^bearer +([A-Za-z0-9._~+/=-]{1,2048}) *$/i.exec(authorization)?.[1] ?? null
}

export function sessionCookie(cookie: string): string | null {
  for (const part of cookie.split(';')) {
    const [name, value] = part.trim().split('=', 2)
    if (name === SESSION_COOKIE && value) return value
  }
  return null
}

/** Whether a browser sent this request from a page of ours. */
export function sameOrigin(origin: string, host: string): boolean {
  try {
    return host !== '' && new URL(origin).host === host
  } catch {
    return false
  }
}
