/** Who may come in how, and what browsers are told. */
import { type Static, Type } from '@sinclair/typebox'

const RATE_LIMITS = ['device', 'overview', 'off'] as const
const RTSP_BASIC = ['tls', 'always', 'never'] as const

function OneOf<const V extends readonly string[]>(values: V, options: { default: V[number]; description: string }) {
  return Type.Union(
    values.map((value: V[number]) => Type.Literal(value)),
    options,
  )
}

export const Security = Type.Object({
  session_timeout: Type.Integer({
    minimum: 1,
    maximum: 31_536_000,
    default: 3600,
    description: 'seconds from a login to its end; a change acts on new logins',
  }),
  rate_limits: OneOf(RATE_LIMITS, { default: 'device', description: 'the set of limits for requests of one client address' }),
  rtsp_basic: OneOf(RTSP_BASIC, {
    default: 'tls',
    description: 'where RTSP offers Basic beside Digest; a change acts on new connections',
  }),
  cors_origins: Type.Array(
    Type.String({
      pattern: '^(\\*|[A-Za-z][A-Za-z0-9+.-]*://[^\\s/,]+)$',
      maxLength: 255,
      description: 'an origin such as https://app.example, or *',
    }),
    { maxItems: 64, uniqueItems: true, default: [], description: 'origins that browsers may call from' },
  ),
  https_redirect: Type.Boolean({ default: false, description: 'plain HTTP is sent to HTTPS, health excepted' }),
  hsts_max_age: Type.Integer({
    minimum: 0,
    maximum: 63_072_000,
    default: 0,
    description: 'seconds for which browsers shall insist on HTTPS (Strict-Transport-Security over TLS); 0: they are not told to',
  }),
  trusted_proxies: Type.Array(Type.String({ maxLength: 64, description: 'an address or a range such as 192.0.2.0/24' }), {
    maxItems: 64,
    uniqueItems: true,
    default: [],
    description: 'reverse proxies whose X-Forwarded-For and X-Forwarded-Proto are believed',
  }),
})
export type Security = Static<typeof Security>
