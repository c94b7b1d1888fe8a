/**
 * The server's certificate and key, in one file: it is replaced by a rename, so that no crash can leave the one without the other.
 * A new pair is first taken into use, then made the one that the next start finds.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Bus } from '../bus.ts'
import type { Component } from '../component.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import { syncFolder, writeFileAtomic } from '../platform/index.ts'
import { type CertificateInfo, checkCertificate, describeCertificate } from './check.ts'
import { type CertificatePem, selfSigned } from './self-signed.ts'

/** Two readings of the same file, for libraries that ask for two. */
export interface CertificateFiles {
  readonly keyFile: string
  readonly certFile: string
}

/** Serves with the certificate; rejects when it cannot, and then goes on with the one before. The path holds during the call only. */
export type CertificateUser = (files: CertificateFiles) => Promise<void>

export class Certificates implements Component {
  readonly #file: string
  readonly #users: CertificateUser[] = []
  #info: CertificateInfo | undefined
  /** One change after the other. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(
    private readonly folder: string,
    private readonly bus: Bus,
    private readonly log: Logger,
    private readonly now: () => number = Date.now,
  ) {
    this.#file = join(folder, 'server.pem')
  }

  async start(): Promise<void> {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 })
    // Of a change that the last process did not live to make.
    rmSync(`${this.#file}.new`, { force: true })
    const kept = this.#read()
    if (kept === null || (kept.self_signed && Date.parse(kept.valid_to) <= this.now())) {
      const made = await selfSigned(this.now())
      writeFileAtomic(this.#file, joined(made), 0o600)
      this.#info = describeCertificate(made.certificate)
    } else {
      this.#info = kept
      if (Date.parse(kept.valid_to) <= this.now()) this.log.warn({ valid_to: kept.valid_to }, 'the certificate has expired')
    }
  }

  stop(): void {
    this.#users.length = 0
  }

  /** Valid from `start` on; their content is that of the present certificate. */
  get files(): CertificateFiles {
    return filesOf(this.#file)
  }

  get info(): CertificateInfo {
    if (this.#info === undefined) throw new Error('the certificates are not started')
    return this.#info
  }

  /** `user` gets every later certificate. */
  use(user: CertificateUser): void {
    this.#users.push(user)
  }

  /** Takes an own certificate into use; an `InvalidRequest` names what is wrong with it. */
  install(given: CertificatePem): Promise<CertificateInfo> {
    const checked = checkCertificate(given, this.now())
    return this.#inTurn(async () => this.#replace(checked))
  }

  /** Goes back to a certificate signed by itself, a new one. */
  renew(): Promise<CertificateInfo> {
    return this.#inTurn(async () => this.#replace(await selfSigned(this.now())))
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => {})
    return done
  }

  async #replace(pem: CertificatePem): Promise<CertificateInfo> {
    const candidate = `${this.#file}.new`
    writeFileAtomic(candidate, joined(pem), 0o600)
    const converted: CertificateUser[] = []
    try {
      for (const user of this.#users) {
        await user(filesOf(candidate))
        converted.push(user)
      }
      renameSync(candidate, this.#file)
    } catch (error) {
      for (const user of converted) await user(this.files)
      throw error
    } finally {
      rmSync(candidate, { force: true })
    }
    syncFolder(this.folder)
    const info = describeCertificate(pem.certificate)
    this.#info = info
    const { subject, fingerprint_sha256 } = info
    this.log.info({ subject, fingerprint_sha256 }, 'certificate changed')
    this.bus.publish('config', 'certificate_changed', { subject, fingerprint_sha256 })
    return info
  }

  /** Null: none yet, or one that cannot be used, which is put aside: without HTTPS nobody could bring a better one. */
  #read(): CertificateInfo | null {
    if (!existsSync(this.#file)) return null
    try {
      const pem = readFileSync(this.#file, 'utf8')
      if (!new X509Certificate(pem).checkPrivateKey(createPrivateKey(pem))) throw new Error('the key is another one')
      return describeCertificate(pem)
    } catch (error) {
      this.log.error({ error: errorText(error), file: this.#file }, 'the certificate cannot be used; a new one is made')
      renameSync(this.#file, `${this.#file}.bad`)
      return null
    }
  }
}

function filesOf(file: string): CertificateFiles {
  return { keyFile: file, certFile: file }
}

function joined({ certificate, privateKey }: CertificatePem): string {
  return `${privateKey.trim()}\n${certificate.trim()}\n`
}
