/** The second factor: time-based codes (RFC 6238) with enrolment and recovery codes. */
import { createHmac, randomBytes } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import QRCode from 'qrcode-svg'
import type { Bus } from '../bus.ts'
import { ApiError, Conflict, InvalidRequest } from '../errors.ts'
import type { Requester } from './accounts.ts'
import type { PasswordGate } from './password-gate.ts'
import { open, seal } from './sealed.ts'
import type { TwoFactorRecord, UserRecord, Users } from './users.ts'

const ISSUER = 'Camera'
const PERIOD_SECONDS = 30
const SECRET_BYTES = 20
const RECOVERY_CODES = 10
/** A clock may be off by this many steps. */
const WINDOW = 1

export interface Enrolment {
  /** Base32, to be typed where no camera is at hand. */
  readonly secret: string
  readonly uri: string
  readonly qr_svg: string
}

export class TwoFactor {
  constructor(
    private readonly users: Users,
    private readonly gate: PasswordGate,
    private readonly sealKey: Buffer,
    private readonly bus: Bus,
    private readonly now: () => number,
  ) {}

  /** A new secret, which counts for nothing until `confirm`. */
  enrol(by: Requester): Enrolment {
    const user = this.account(by)
    if (user.two_factor?.enabled) throw new Conflict('The second factor is enabled already; remove it first', by.username)
    const secret = new Secret({ buffer: Uint8Array.from(randomBytes(SECRET_BYTES)).buffer })
    const sealed = seal(this.sealKey, secret.base32, sealContext(user.username))
    this.users.update(user, { two_factor: { sealed_secret: sealed, enabled: false, last_step: 0, recovery: [] } })
    const uri = codes(user.username, secret.base32).toString()
    const qr = new QRCode({
      content: uri,
      padding: 2,
      width: 256,
      height: 256,
      ecl: 'M',
      join: true,
      container: 'svg-viewbox',
      xmlDeclaration: false,
    })
    return { secret: secret.base32, uri, qr_svg: qr.svg() }
  }

  /** The first code proves the authenticator; from now on logins need one. The recovery codes are shown this once. */
  confirm(by: Requester, otp: string): string[] {
    const user = this.account(by)
    if (!user.two_factor) throw new Conflict('There is no enrolment to confirm', by.username)
    if (user.two_factor.enabled) throw new Conflict('The second factor is enabled already', by.username)
    const step = this.step(user, user.two_factor, otp)
    if (step === null) throw new InvalidRequest('body.otp', 'The code is wrong; check the clock of the device and of the phone')
    const recovery = Array.from({ length: RECOVERY_CODES }, recoveryCode)
    const hashes = recovery.map((code) => this.hashed(user.username, code))
    this.users.update(user, { two_factor: { ...user.two_factor, enabled: true, last_step: step, recovery: hashes } })
    this.bus.publish('auth', 'totp_enabled', { username: by.username, address: by.address, target: by.username })
    return recovery
  }

  async remove(by: Requester, password: string, otp: string): Promise<void> {
    const user = await this.gate.check(by.username, password, by.address)
    if (!user.two_factor) throw new Conflict('There is no second factor', by.username)
    if (user.two_factor.enabled) this.require(user, otp, by.address)
    this.users.update(this.account(by), { two_factor: null })
    this.bus.publish('auth', 'totp_disabled', { username: by.username, address: by.address, target: by.username })
  }

  /** Throws unless the account needs no code or this one is right. Each code is good once. */
  require(user: UserRecord, otp: string | undefined, address: string): void {
    const { two_factor: record } = user
    if (!record?.enabled) return
    if (otp === undefined) throw new ApiError('OTP_REQUIRED', 'A code of the authenticator is required', 'body.otp')
    const step = this.step(user, record, otp)
    const hash = this.hashed(user.username, otp)
    if (step !== null) {
      this.users.update(user, { two_factor: { ...record, last_step: step } })
    } else if (record.recovery.includes(hash)) {
      this.users.update(user, { two_factor: { ...record, recovery: record.recovery.filter((left) => left !== hash) } })
    } else {
      this.gate.fail(user.username, address)
    }
  }

  /** The time step that a code belongs to, where it is right and later than the last one used. */
  private step(user: UserRecord, record: TwoFactorRecord, otp: string): number | null {
    const secret = open(this.sealKey, record.sealed_secret, sealContext(user.username))
    const token = otp.replaceAll(' ', '')
    if (secret === null || !/^\d{6}$/.test(token)) return null
    const delta = codes(user.username, secret).validate({ token, timestamp: this.now(), window: WINDOW })
    if (delta === null) return null
    const step = Math.floor(this.now() / 1000 / PERIOD_SECONDS) + delta
    return step > record.last_step ? step : null
  }

  private hashed(username: string, code: string): string {
    const plain = code.toLowerCase().replace(/[^a-z2-7]/g, '')
    return createHmac('sha256', this.sealKey).update(`recovery\0${username}\0${plain}`).digest('base64')
  }

  private account({ username }: Requester): UserRecord {
    const user = this.users.get(username)
    if (!user) throw new Conflict('The account is gone', username)
    return user
  }
}

function codes(label: string, secret: string): TOTP {
  return new TOTP({
    issuer: ISSUER,
    label,
    algorithm: 'SHA1',
    digits: 6,
    period: PERIOD_SECONDS,
    secret: Secret.fromBase32(secret),
  })
}

export function sealContext(username: string): string {
  return `totp:${username}`
}

/** 80 bits in four groups. */
function recoveryCode(): string {
  const text = new Secret({ buffer: Uint8Array.from(randomBytes(10)).buffer }).base32.toLowerCase()
  return text.match(/.{4}/g)?.join('-') ?? text
}
