/** Names of files as clients write them. What is refused here never meets the file system. */
import { InvalidRequest } from '../errors.ts'

export const DEVICE_ROOT = '/media/data'
/** Where uploads and exports lie until they are whole; no request can name it. */
export const UPLOAD_FOLDER = '.uploads'

const MAX_NAME_BYTES = 255
const MAX_PATH_BYTES = 4096
export const MAX_DEPTH = 32

/**
 * The components of a path that is relative to the storage or starts with `/media/data`; none for the storage itself. `field` is what
 * the error names.
 */
export function parsePath(text: string, field: string): string[] {
  if (Buffer.byteLength(text) > MAX_PATH_BYTES) throw new InvalidRequest(field, `The path is longer than ${MAX_PATH_BYTES} bytes`)
  const parts = text.split('/')
  // One slash at either end is how people write folders.
  if (parts.length > 1 && parts.at(-1) === '') parts.pop()
  const absolute = parts[0] === ''
  if (absolute) parts.shift()
  // In a URL a device path loses its first slash.
  const onDevice = parts[0] === 'media' && parts[1] === 'data'
  if (onDevice) parts.splice(0, 2)
  else if (absolute && parts.length > 0) throw new InvalidRequest(field, `An absolute path must start with ${DEVICE_ROOT}`)
  if (parts.length > MAX_DEPTH) throw new InvalidRequest(field, `The path is deeper than ${MAX_DEPTH} folders`)
  for (const part of parts) checkName(part, field)
  if (parts[0] !== undefined && isReserved(parts[0])) throw new InvalidRequest(field, 'This name belongs to the server')
  return parts
}

/** One component. */
export function checkName(name: string, field: string): void {
  const why = problemOf(name)
  if (why !== null) throw new InvalidRequest(field, why)
}

/** Whether a request could name an entry of that name. */
export function canBeNamed(name: string): boolean {
  return problemOf(name) === null
}

/** In the storage's own folder; file systems that fold letters would find the folder by other spellings too. */
export function isReserved(name: string): boolean {
  return name.normalize('NFKC').toLowerCase() === UPLOAD_FOLDER
}

export function devicePath(parts: readonly string[]): string {
  return [DEVICE_ROOT, ...parts].join('/')
}

function problemOf(name: string): string | null {
  if (name === '') return 'A name is empty'
  if (name === '.' || name === '..') return 'The path contains a dot segment'
  if (name.includes('/')) return 'The name contains a slash'
  if (name.includes('\\')) return 'The name contains a backslash'
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not come in
  if (/[\0-\x1f\x7f-\x9f]/.test(name)) return 'The name contains a control character'
  // What turns or hides text makes one name look like another.
  if (/[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffd]/.test(name))
    return 'The name contains an invisible or broken letter'
  if (/\p{Surrogate}/u.test(name)) return 'The name contains half a letter'
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return `The name is longer than ${MAX_NAME_BYTES} bytes`
  return null
}
