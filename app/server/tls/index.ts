export { type CertificateFiles, Certificates, type CertificateUser } from './certificates.ts'
export type { CertificateInfo } from './check.ts'
export type { CertificatePem } from './self-signed.ts'
