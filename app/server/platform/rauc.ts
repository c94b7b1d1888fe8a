/** Asks RAUC about a bundle. It reads and checks the signature, and needs no rights. */
import { execFile } from 'node:child_process'

const PATIENCE_MS = 30_000
const MAX_OUTPUT = 1024 * 1024

export type BundleAnswer =
  | { readonly kind: 'trusted'; readonly output: string }
  | { readonly kind: 'refused'; readonly output: string }
  /** There is no RAUC here. */
  | { readonly kind: 'unknown' }

/** `file` is an absolute path. */
export function inspectBundle(file: string, keyring: string, command = 'rauc'): Promise<BundleAnswer> {
  const args = ['info', `--keyring=${keyring}`, '--output-format=json', file]
  const options = { timeout: PATIENCE_MS, maxBuffer: MAX_OUTPUT, env: { ...process.env, LC_ALL: 'C' } }
  return new Promise((resolve) => {
    execFile(command, args, options, (error, stdout, stderr) => {
      if (error === null) resolve({ kind: 'trusted', output: stdout })
      else if (error.code === 'ENOENT') resolve({ kind: 'unknown' })
      else resolve({ kind: 'refused', output: stderr })
    })
  })
}
