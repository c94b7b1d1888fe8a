/** What a handler has returned, as an answer. */
import type { ApiError } from '../errors.ts'
import { compressNow, isText, pickCoding } from './encoding.ts'
import { errorBody, rateLimitBody, successBody } from './envelope.ts'
import type { Exchange, Headers } from './exchange.ts'
import { sendFile } from './file-reply.ts'
import type { Gate } from './gate.ts'
import type { HttpLimits } from './limits.ts'
import type { RateDecision } from './rate-limit.ts'
import { BytesReply, FileReply, JsonReply } from './route.ts'
import { BINARY_CSP } from './security-headers.ts'

const JSON_TYPE = 'application/json; charset=utf-8'
const JSON_HEADERS: Headers = Object.freeze({ 'Content-Type': JSON_TYPE })

/** Returns a promise only where something has to be waited for. */
export function sendReply(
  exchange: Exchange,
  value: unknown,
  now: number,
  limits: HttpLimits,
  streams: Gate,
): Promise<void> | undefined {
  if (value instanceof FileReply) return sendFile(exchange, value, limits, streams)
  if (value instanceof BytesReply) {
    const headers = { 'Content-Type': value.type, 'Content-Security-Policy': BINARY_CSP, ...value.headers }
    if (isText(value.type)) return sendText(exchange, headers, value.bytes, limits.compressAbove)
    exchange.send(200, headers, value.bytes)
    return undefined
  }
  const own = value instanceof JsonReply ? value : null
  const json = JSON.stringify(own === null ? value : own.value) ?? '{"success":true}'
  const body = successBody(json, exchange.versioned, now)
  return sendText(exchange, own === null ? JSON_HEADERS : { ...JSON_HEADERS, ...own.headers }, body, limits.compressAbove)
}

function sendText(exchange: Exchange, headers: Headers, body: string | Uint8Array, above: number): Promise<void> | undefined {
  if (body.length <= above) {
    exchange.send(200, headers, body)
    return undefined
  }
  const varied = { ...headers, Vary: 'Accept-Encoding' }
  if (pickCoding(exchange.acceptEncoding, ['gzip']) === null) {
    exchange.send(200, varied, body)
    return undefined
  }
  return compressNow(body).then((small) => exchange.send(200, { ...varied, 'Content-Encoding': 'gzip' }, small))
}

export function sendError(exchange: Exchange, error: ApiError, now: number): void {
  const headers: Record<string, string> = { 'Content-Type': JSON_TYPE, ...error.headers }
  if (error.status === 401 && headers['WWW-Authenticate'] === undefined && !exchange.fromPage) {
    exchange.challenges = exchange.listener.challenges()
  }
  exchange.send(error.status, headers, errorBody(error, exchange.versioned, now))
}

/** Written without an exception on the way: a flood of requests would spend most of its time on the stacks. */
export function sendRateLimited(exchange: Exchange, rate: RateDecision, now: number): void {
  const message = 'Too many requests'
  const details = `${rate.limit} per ${rate.period}`
  const body = exchange.versioned
    ? rateLimitBody(message, rate)
    : errorBody({ code: 'RATE_LIMITED', message, details }, false, now)
  exchange.send(429, { 'Content-Type': JSON_TYPE, 'Retry-After': String(rate.retryAfter) }, body)
}
