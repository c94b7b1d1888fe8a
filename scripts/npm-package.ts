/** Single files of packages that are not installed because they are for another platform, taken through npm and checked by hash. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './server-bundle.ts'

const PACKAGES = join(ROOT, 'build', 'packages')
const FETCH_TIMEOUT_MS = 300_000

export interface PackageId {
  readonly name: string
  readonly version: string
  /** As in a lock file: `sha512-…`. */
  readonly integrity: string
}

/** The package as the lock file pins it, whether it is installed here or not. */
export function lockedPackage(name: string): PackageId {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version?: string; integrity?: string }>
  }
  const { version, integrity } = lock.packages[`node_modules/${name}`] ?? {}
  if (!version || !integrity) throw new Error(`the lock file does not pin ${name}`)
  return { name, version, integrity }
}

/** The folder of the unpacked package. What lies there was checked before it got its name, so a second call fetches nothing. */
export function fetchPackage({ name, version, integrity }: PackageId): string {
  const folder = join(PACKAGES, `${name.replace('/', '+')}-${version}`)
  if (existsSync(folder)) return folder
  mkdirSync(PACKAGES, { recursive: true })
  const scratch = mkdtempSync(join(PACKAGES, '.new-'))
  try {
    const packed = execFileSync(
      'npm',
      ['pack', `${name}@${version}`, '--ignore-scripts', '--silent', '--pack-destination', scratch],
      {
        cwd: ROOT,
        encoding: 'utf8',
        timeout: FETCH_TIMEOUT_MS,
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    const archive = join(scratch, packed.trim())
    const found = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`
    if (found !== integrity) throw new Error(`${name}@${version} is not the pinned one: ${found}`)
    execFileSync('tar', ['-xzf', archive, '-C', scratch, 'package'], { timeout: FETCH_TIMEOUT_MS })
    // Another build may have been quicker.
    if (!existsSync(folder)) renameSync(join(scratch, 'package'), folder)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
  return folder
}
