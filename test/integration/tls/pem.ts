/** Certificates for tests, and connections that see which one the server has. */
import { createHash, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:tls'
import { generate } from 'selfsigned'

export interface Pem {
  readonly certificate: string
  readonly private_key: string
}

const DAY = 86_400_000

export async function pem(
  name = 'own.example',
  options: { from?: number; to?: number; bits?: number; curve?: 'P-256' | 'P-384' } = {},
) {
  const { from = -1, to = 30, bits, curve = 'P-256' } = options
  const made = await generate([{ name: 'commonName', value: name }], {
    ...(bits === undefined ? { keyType: 'ec', curve } : { keyType: 'rsa', keySize: bits }),
    algorithm: 'sha256',
    notBeforeDate: new Date(Date.now() + from * DAY),
    notAfterDate: new Date(Date.now() + to * DAY),
    extensions: [
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: name },
          { type: 7, ip: '192.0.2.7' },
        ],
      },
    ],
  })
  return { certificate: made.cert, private_key: made.private } satisfies Pem
}

export function otherKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
}

/** SHA-256 of the certificate that a new connection meets. */
export async function served(port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { raw } = socket.getPeerCertificate()
  socket.destroy()
  return createHash('sha256')
    .update(raw)
    .digest('hex')
    .toUpperCase()
    .replace(/..(?=.)/g, '$&:')
}
