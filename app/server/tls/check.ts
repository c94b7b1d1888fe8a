/** Whether a certificate and a key from outside may be used, and what a certificate says of itself. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { InvalidRequest } from '../errors.ts'
import type { CertificatePem } from './self-signed.ts'

export interface CertificateInfo {
  readonly subject: string
  readonly issuer: string
  /** With their kind: `DNS:camera.local`, `IP:192.0.2.1`. */
  readonly subject_alt_names: readonly string[]
  /** ISO 8601. */
  readonly valid_from: string
  readonly valid_to: string
  readonly fingerprint_sha256: string
  readonly self_signed: boolean
}

const BLOCK = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g
const MAX_CHAIN = 10
const RSA_BITS = { least: 2048, most: 8192 }
/** What the TLS library and every browser know. */
const CURVES: readonly (string | undefined)[] = ['prime256v1', 'secp384r1', 'secp521r1']

/** The same in a clean form: one certificate after the other, and the key unencrypted. Throws naming the field that is wrong. */
export function checkCertificate(given: CertificatePem, now: number): CertificatePem {
  const chain = parseChain(given.certificate)
  const [leaf] = chain
  if (leaf === undefined) throw wrongCertificate('Expected one or more certificates in PEM form')
  checkDates(chain, now)
  checkStrength(leaf.publicKey)
  const key = parseKey(given.privateKey)
  if (!leaf.checkPrivateKey(key)) throw wrongKey('The key does not belong to the certificate')
  const pem = { certificate: chain.map(String).join(''), privateKey: String(key.export({ type: 'pkcs8', format: 'pem' })) }
  try {
    createSecureContext({ cert: pem.certificate, key: pem.privateKey })
  } catch {
    throw wrongCertificate('The TLS library does not take the certificate with this key')
  }
  return pem
}

export function describeCertificate(pem: string): CertificateInfo {
  const leaf = new X509Certificate(pem)
  return {
    subject: oneLine(leaf.subject),
    issuer: oneLine(leaf.issuer),
    subject_alt_names: (leaf.subjectAltName ?? '')
      .split(', ')
      .filter((name) => name !== '')
      .map((name) => name.replace(/^IP Address:/, 'IP:')),
    valid_from: new Date(leaf.validFrom).toISOString(),
    valid_to: new Date(leaf.validTo).toISOString(),
    fingerprint_sha256: leaf.fingerprint256,
    // `checkIssued` would also want a key that may sign others.
    self_signed: leaf.issuer === leaf.subject && leaf.verify(leaf.publicKey),
  }
}

function parseChain(text: string): X509Certificate[] {
  const blocks = text.match(BLOCK) ?? []
  if (blocks.length > MAX_CHAIN) throw wrongCertificate(`The chain has more than ${MAX_CHAIN} certificates`)
  try {
    return blocks.map((block) => new X509Certificate(block))
  } catch {
    throw wrongCertificate('The certificate cannot be read')
  }
}

function checkDates(chain: readonly X509Certificate[], now: number): void {
  for (const [index, certificate] of chain.entries()) {
    if (Date.parse(certificate.validFrom) > now) throw wrongCertificate(`Not valid before ${certificate.validFrom}`)
    if (Date.parse(certificate.validTo) <= now) throw wrongCertificate(`Expired on ${certificate.validTo}`)
    const issuer = chain[index + 1]
    if (issuer && !certificate.checkIssued(issuer)) {
      throw wrongCertificate('Each certificate of the chain must be followed by the one that has signed it')
    }
  }
}

function checkStrength({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): void {
  if (type === 'rsa') {
    const bits = details?.modulusLength ?? 0
    if (bits >= RSA_BITS.least && bits <= RSA_BITS.most) return
    throw wrongCertificate(`An RSA key must have ${RSA_BITS.least} to ${RSA_BITS.most} bits; this one has ${bits}`)
  }
  if (type !== 'ec' || !CURVES.includes(details?.namedCurve)) {
    throw wrongCertificate('The key must be RSA, or EC on the curve P-256, P-384 or P-521')
  }
}

function parseKey(text: string): KeyObject {
  try {
    return createPrivateKey({ key: text, format: 'pem' })
  } catch {
    // The library's own words might quote the key.
    throw wrongKey('Expected an unencrypted private key in PEM form')
  }
}

function oneLine(name: string): string {
  return (name as string | undefined)?.replaceAll('\n', ', ') ?? ''
}

function wrongCertificate(why: string): InvalidRequest {
  return new InvalidRequest('body.certificate', why)
}

function wrongKey(why: string): InvalidRequest {
  return new InvalidRequest('body.private_key', why)
}
