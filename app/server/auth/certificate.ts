/** The certificate that HTTPS starts with: self-signed, made once, kept on the data partition. */
import { existsSync, mkdirSync } from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { writeFileAtomic } from '../platform/index.ts'

export interface CertificateFiles {
  readonly keyFile: string
  readonly certFile: string
}

const VALID_DAYS = 3650

/** Both files, made when they are missing. */
export async function ensureCertificate(folder: string): Promise<CertificateFiles> {
  const files = { keyFile: join(folder, 'key.pem'), certFile: join(folder, 'cert.pem') }
  if (existsSync(files.keyFile) && existsSync(files.certFile)) return files
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const name = hostname()
  const addresses = Object.values(networkInterfaces()).flatMap((list) =>
    (list ?? []).map(({ address }) => address.split('%')[0] ?? ''),
  )
  const made = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notAfterDate: new Date(Date.now() + VALID_DAYS * 86_400_000),
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          ...[...new Set([name, `${name}.local`, 'localhost'])].map((value) => ({ type: 2 as const, value })),
          ...[...new Set(['127.0.0.1', ...addresses])].map((ip) => ({ type: 7 as const, ip })),
        ],
      },
    ],
  })
  writeFileAtomic(files.keyFile, made.private, 0o600)
  writeFileAtomic(files.certFile, made.cert, 0o644)
  return files
}
