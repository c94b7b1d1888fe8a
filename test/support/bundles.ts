/** Real RAUC bundles, signed with keys of the test's own. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

export const COMPATIBLE = 'camera-server-test'

export interface Signer {
  readonly key: string
  /** Also the keyring that trusts it. */
  readonly certificate: string
}

export interface BundleOptions {
  readonly version: string
  readonly compatible?: string
  readonly description?: string
  /** Of the picture of the system inside. */
  readonly bytes?: number
}

/** A folder that goes with the test. */
export function scratchFolder(t: Test, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function makeSigner(folder: string, name: string): Signer {
  const key = join(folder, `${name}.key.pem`)
  const certificate = join(folder, `${name}.cert.pem`)
  const subject = ['-subj', `/CN=${name}`, '-days', '2']
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256']
  execFileSync('openssl', ['req', '-x509', ...curve, '-nodes', '-keyout', key, '-out', certificate, ...subject], {
    stdio: 'ignore',
  })
  return { key, certificate }
}

export function makeBundle(file: string, { key, certificate }: Signer, options: BundleOptions): void {
  const { version, compatible = COMPATIBLE, description = '', bytes = 65_536 } = options
  const content = `${file}.content`
  mkdirSync(content)
  writeFileSync(join(content, 'rootfs.img'), randomBytes(bytes))
  const update = ['[update]', `compatible=${compatible}`, `version=${version}`, `description=${description}`, 'build=20261101']
  const manifest = [...update, '', '[bundle]', 'format=verity', '', '[image.rootfs]', 'filename=rootfs.img', '']
  writeFileSync(join(content, 'manifest.raucm'), manifest.join('\n'))
  execFileSync('rauc', [`--cert=${certificate}`, `--key=${key}`, 'bundle', content, file], { stdio: 'ignore' })
  rmSync(content, { recursive: true })
}
