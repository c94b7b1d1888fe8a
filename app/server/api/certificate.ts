/** The certificate of HTTPS. */
import { Type } from '@sinclair/typebox'
import { type Route, route } from '../http/index.ts'
import type { Certificates } from '../tls/index.ts'
import { closed } from './schemas.ts'

const PATH = '/api/system/certificate'

const Certificate = Type.Object({
  subject: Type.String(),
  issuer: Type.String(),
  subject_alt_names: Type.Array(Type.String(), { description: 'with their kind: DNS:camera.local, IP:192.0.2.1' }),
  valid_from: Type.String({ format: 'date-time' }),
  valid_to: Type.String({ format: 'date-time' }),
  fingerprint_sha256: Type.String(),
  self_signed: Type.Boolean(),
})

export function certificateRoutes(certificates: Certificates): Route[] {
  const shared = { path: PATH, access: 'admin', rate: 'api', tag: 'System', response: Certificate } as const
  return [
    route({
      ...shared,
      method: 'GET',
      summary: 'The certificate that HTTPS serves with; the key is never answered',
      handler: () => certificates.info,
    }),
    route({
      ...shared,
      method: 'PUT',
      summary: 'Serve with an own certificate, without an interruption',
      description:
        'The certificate (with the chain behind it) must be valid now, its key RSA of at least 2048 bits or EC (P-256, P-384, P-521), ' +
        'and the private key must be its own and unencrypted. Connections that are open stay on the certificate they began with.',
      body: Type.Object(
        {
          certificate: Type.String({
            maxLength: 48_000,
            description: 'PEM: the certificate, then those that lead to the authority',
          }),
          private_key: Type.String({ maxLength: 12_000, description: 'PEM' }),
        },
        closed,
      ),
      handler: ({ body }) => certificates.install({ certificate: body.certificate, privateKey: body.private_key }),
    }),
    route({
      ...shared,
      method: 'DELETE',
      summary: 'Go back to a certificate signed by the device itself, a new one',
      handler: () => certificates.renew(),
    }),
  ]
}
