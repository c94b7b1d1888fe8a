/** The two forms of bodies: bare (device reference), and with an envelope under `/api/v1/`. */
import type { ApiError } from '../errors.ts'
import type { RateDecision } from './rate-limit.ts'

/** Texts that stand around the JSON of an answer. */
export function successBody(json: string, versioned: boolean, now: number): string {
  return versioned ? `{"status":"success","data":${json},"timestamp":${now}}` : json
}

export function errorBody(error: Pick<ApiError, 'code' | 'message' | 'details'>, versioned: boolean, now: number): string {
  const { code, message, details } = error
  if (!versioned) return JSON.stringify({ error: { code, message, details, timestamp: new Date(now).toISOString() } })
  return JSON.stringify({ status: 'error', error: { code, message, details, timestamp: now }, timestamp: now })
}

/** The overview form has a body of its own for 429. */
export function rateLimitBody(message: string, { limit, period, retryAfter }: RateDecision): string {
  return JSON.stringify({ error: message, limit, period, retry_after: retryAfter })
}
