/** The second factor of the own account. */
import { Type } from '@sinclair/typebox'
import type { Auth } from '../auth/index.ts'
import { type Route, route } from '../http/index.ts'
import { closed, Success } from './schemas.ts'
import { requester } from './users.ts'

const Otp = Type.String({ minLength: 6, maxLength: 32, description: 'six digits' })

export function twoFactorRoutes(auth: Auth): Route[] {
  const shared = { access: 'guest', rate: 'api', tag: 'Authentication' } as const
  return [
    route({
      ...shared,
      method: 'POST',
      path: '/api/auth/totp',
      summary: 'Begin the enrolment of an authenticator (RFC 6238)',
      description:
        'It counts from `/api/auth/totp/verify` on. Basic and Digest over HTTP then answer OTP_REQUIRED, as neither has a place for a code; RTSP stays open to an account with that grant.',
      response: Type.Object({
        secret: Type.String({ description: 'Base32' }),
        uri: Type.String({ description: 'otpauth://' }),
        qr_svg: Type.String({ description: 'the same as a picture to scan' }),
      }),
      errors: ['CONFLICT'],
      handler: ({ caller, address }) => auth.twoFactor.enrol(requester(caller, address)),
    }),
    route({
      ...shared,
      method: 'POST',
      path: '/api/auth/totp/verify',
      summary: 'Complete the enrolment with a first code; the answer shows the recovery codes this once',
      body: Type.Object({ otp: Otp }, closed),
      response: Type.Object({ success: Type.Boolean(), enabled: Type.Boolean(), recovery_codes: Type.Array(Type.String()) }),
      errors: ['CONFLICT'],
      handler: ({ body, caller, address }) => {
        const codes = auth.twoFactor.confirm(requester(caller, address), body.otp)
        return { success: true, enabled: true, recovery_codes: codes }
      },
    }),
    route({
      ...shared,
      method: 'DELETE',
      path: '/api/auth/totp',
      summary: 'Remove the second factor',
      body: Type.Object({ password: Type.String({ minLength: 1, maxLength: 256 }), otp: Otp }, closed),
      response: Success,
      errors: ['INVALID_CREDENTIALS', 'ACCOUNT_LOCKED', 'CONFLICT', 'SERVICE_UNAVAILABLE'],
      handler: async ({ body, caller, address }) => {
        await auth.twoFactor.remove(requester(caller, address), body.password, body.otp)
        return { success: true }
      },
    }),
  ]
}
