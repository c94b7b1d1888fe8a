/** Passwords: the rules, bcrypt off the event loop, and a bound on how many rounds run at once. */
import { hash, verify } from '@node-rs/bcrypt'
import { ApiError, InvalidRequest } from '../errors.ts'

export const BCRYPT_ROUNDS = 12
/** bcrypt runs in libuv's pool of 4, which file reads share: leave half of it to them. */
const MAX_RUNNING = 2
const MAX_WAITING = 64
/** bcrypt ignores what lies beyond. */
const MAX_BYTES = 72

/** Throws naming `field` when the password breaks a rule; the history is checked where the hashes are. */
export function checkPasswordRules(password: string, field: string): void {
  const rules: [boolean, string][] = [
    [password.length >= 8, 'must have at least 8 characters'],
    [Buffer.byteLength(password) <= MAX_BYTES, `must have at most ${MAX_BYTES} bytes`],
    [/\p{Lu}/u.test(password), 'must contain an upper case letter'],
    [/\p{Ll}/u.test(password), 'must contain a lower case letter'],
    [/\p{Nd}/u.test(password), 'must contain a digit'],
    [/[^\p{L}\p{Nd}\s]/u.test(password), 'must contain a special character'],
    [!/[\p{Cc}]/u.test(password), 'must not contain control characters'],
  ]
  const broken = rules.find(([kept]) => !kept)
  if (broken) throw new InvalidRequest(field, `The password ${broken[1]}`)
}

/** Runs at most `MAX_RUNNING` bcrypt rounds at once; beyond `MAX_WAITING` more it refuses rather than queue without bound. */
export class PasswordHasher {
  private running = 0
  private readonly waiting: (() => void)[] = []

  constructor(private readonly rounds = BCRYPT_ROUNDS) {}

  hash(password: string): Promise<string> {
    return this.run(() => hash(password, this.rounds))
  }

  /** `recheck` runs when the round's turn has come, and may throw: what was worth it before the wait need not be after. */
  verify(password: string, hashed: string, recheck?: () => void): Promise<boolean> {
    return this.run(() => {
      recheck?.()
      return verify(password, hashed)
    })
  }

  private async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.running >= MAX_RUNNING) {
      if (this.waiting.length >= MAX_WAITING) {
        throw new ApiError('SERVICE_UNAVAILABLE', 'Too many logins at once', 'login', { 'Retry-After': '5' })
      }
      await new Promise<void>((resolve) => this.waiting.push(resolve))
    }
    this.running += 1
    try {
      return await work()
    } finally {
      this.running -= 1
      this.waiting.shift()?.()
    }
  }
}
