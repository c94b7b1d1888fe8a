/** Calls of the server's API. The session is an HttpOnly cookie: no token ever passes through this code. */

/** An answer that is no success, or none at all (`status` 0). */
export class ApiFailure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** How long the server asks to wait; 0 where it does not say. */
    readonly retryAfterMs = 0,
  ) {
    super(message)
  }
}

interface CallOptions {
  readonly body?: unknown
  /** Here a 401 speaks of the credentials in the body, not of the session. */
  readonly credentialsInBody?: boolean
  readonly signal?: AbortSignal
}

export interface SessionListener {
  sessionEnded(): void
  passwordChangeRequired(): void
}

const TIMEOUT_MS = 15_000
let listener: SessionListener | null = null

/** Who is told that the session is over, whichever call finds out first. */
export function listenToSession(next: SessionListener): void {
  listener = next
}

export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const response = await send(method, path, options)
  return (await response.json()) as T
}

/** The answer as it comes; throws `ApiFailure` for all that is no success. */
export async function send(method: string, path: string, options: CallOptions = {}): Promise<Response> {
  const { body, signal, credentialsInBody = false } = options
  // The header tells the server that a script asks: a Basic challenge would make the browser open its own password dialog.
  const headers: Record<string, string> = { Accept: 'application/json, image/*', 'X-Requested-With': 'XMLHttpRequest' }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  const timeout = AbortSignal.timeout(TIMEOUT_MS)
  let response: Response
  try {
    response = await fetch(path, {
      method,
      headers,
      cache: 'no-store',
      credentials: 'same-origin',
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiFailure(0, 'UNREACHABLE', 'The camera does not answer. Is it switched on and in the network?')
  }
  if (response.ok) return response
  const failure = await failureOf(response)
  if (failure.status === 401 && !credentialsInBody) listener?.sessionEnded()
  if (failure.code === 'PASSWORD_CHANGE_REQUIRED') listener?.passwordChangeRequired()
  throw failure
}

async function failureOf(response: Response): Promise<ApiFailure> {
  const retryAfterMs = Number(response.headers.get('Retry-After') ?? 0) * 1000 || 0
  const fallback =
    response.status === 429 ? 'Too many requests; wait a moment' : `The camera answered with error ${response.status}`
  try {
    const { error } = (await response.json()) as { error?: unknown }
    if (typeof error === 'object' && error !== null) {
      const { code = '', message = fallback } = error as { code?: string; message?: string }
      return new ApiFailure(response.status, code, message, retryAfterMs)
    }
  } catch {
    // No JSON: a proxy's page, or a body that broke off.
  }
  return new ApiFailure(response.status, response.status === 429 ? 'RATE_LIMITED' : '', fallback, retryAfterMs)
}

/** What to show of anything thrown. */
export function failureText(error: unknown): string {
  return error instanceof ApiFailure ? error.message : 'Something went wrong; please try again'
}
