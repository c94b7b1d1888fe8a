/** The certificate that HTTPS starts with: signed by itself, for every name and address that this machine is known by. */
import { hostname, networkInterfaces } from 'node:os'

export interface CertificatePem {
  /** The server's certificate, then those that lead to the authority. */
  readonly certificate: string
  readonly privateKey: string
}

const VALID_DAYS = 3650

export async function selfSigned(now: number): Promise<CertificatePem> {
  // Loaded when it is needed, once in ten years: it takes a fifth of the time in which a server starts.
  const { generate } = await import('selfsigned')
  const name = hostname()
  const addresses = Object.values(networkInterfaces()).flatMap((list) =>
    (list ?? []).map(({ address }) => address.split('%')[0] ?? ''),
  )
  const made = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    // A board without a clock starts in the past; a client's clock may be a little behind.
    notBeforeDate: new Date(now - 86_400_000),
    notAfterDate: new Date(now + VALID_DAYS * 86_400_000),
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
  return { certificate: made.cert, privateKey: made.private }
}
