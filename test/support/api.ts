/** The public API, called as a script would. */
import { setTimeout as delay } from 'node:timers/promises'
import { ADMIN_PASSWORD, type TestServer } from './server.ts'

/** When a condition is given up. What is quick here takes long beside seven others on two cores. */
export const PATIENCE_MS = 60_000

/** A test looks at a field here and there; tap compares the values. */
export interface Json {
  readonly [key: string]: Json
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Json
}

export interface Api {
  readonly token: string
  get(path: string): Promise<Answer>
  post(path: string, body?: unknown): Promise<Answer>
  put(path: string, body?: unknown): Promise<Answer>
  patch(path: string, body?: unknown): Promise<Answer>
  delete(path: string): Promise<Answer>
  /** Bytes of an answer that is no JSON. */
  bytes(path: string, headers?: Record<string, string>): Promise<{ status: number; headers: Headers; bytes: Buffer }>
}

export async function call(url: string, method: string, headers: Record<string, string>, body?: unknown): Promise<Answer> {
  const content: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
  const response = await fetch(url, {
    method,
    headers: { ...content, ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: (text === '' ? {} : JSON.parse(text)) as Json }
}

/** Logs in and answers calls with the token. */
export async function login(server: Pick<TestServer, 'base'>, username = 'admin', password = ADMIN_PASSWORD): Promise<Api> {
  const answer = await call(`${server.base}/api/login`, 'POST', {}, { username, password })
  if (answer.status !== 200) throw new Error(`login failed: ${JSON.stringify(answer.body)}`)
  const token = String(answer.body.token)
  const authorization = { authorization: `Bearer ${token}` }
  const at = (path: string) => `${server.base}${path}`
  return {
    token,
    get: (path) => call(at(path), 'GET', authorization),
    post: (path, body) => call(at(path), 'POST', authorization, body),
    put: (path, body) => call(at(path), 'PUT', authorization, body),
    patch: (path, body) => call(at(path), 'PATCH', authorization, body),
    delete: (path) => call(at(path), 'DELETE', authorization),
    bytes: async (path, headers = {}) => {
      const response = await fetch(at(path), { headers: { ...authorization, ...headers } })
      return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
    },
  }
}

/** Asks until the answer satisfies; fails with the last answer when it takes too long. */
export async function until<T>(
  ask: () => Promise<T> | T,
  good: (value: T) => boolean,
  what: string,
  timeoutMs = PATIENCE_MS,
): Promise<T> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const value = await ask()
    if (good(value)) return value
    if (performance.now() > deadline) throw new Error(`${what}: not within ${timeoutMs} ms; last: ${JSON.stringify(value)}`)
    await delay(20)
  }
}

/** The outcome of the job that `started` speaks of. */
export async function jobDone(api: Api, started: Json, timeoutMs = 2 * PATIENCE_MS): Promise<Json> {
  const path = `/api/jobs/${started.job_id}`
  const over = ({ status, body }: Answer) => status !== 200 || !['running', 'cancelling'].includes(String(body.status))
  return (await until(() => api.get(path), over, `the end of job ${started.job_id}`, timeoutMs)).body
}
