/**
 * The way to what only root may do on the appliance: one request a connection to the socket of `camera-system`, one line of words; the answer is
 * `progress N TEXT` and `data LINE` any number of times, then `done` or `failed CODE MESSAGE`.
 */
import { lstatSync } from 'node:fs'
import { createConnection } from 'node:net'
import { ApiError, type ErrorCode, UnsupportedSetting } from '../errors.ts'
import { Turnstile } from '../turnstile.ts'

const WORD = /^[A-Za-z0-9._:,/=+@%-]{1,255}$/
const MAX_REQUEST = 1024
const MAX_LINE = 256 * 1024
const MAX_ANSWER = 4 * 1024 * 1024
const DEFAULT_TIMEOUT_MS = 15_000
/** The socket takes 8 connections and drops others: what this process leaves is for the work that one before it began. */
const AT_ONCE = 4
const WAITING = 32

export interface AskOptions {
  /** For the whole answer, from when it is asked for: before that, a request may wait for its turn. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** The fraction is from 0 to 1. */
  readonly onProgress?: (fraction: number, text: string) => void
}

/** The system service has understood, and refuses or could not do it. */
export class AgentFailure extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
    this.name = 'AgentFailure'
  }
}

const CODES: Readonly<Record<string, ErrorCode>> = {
  SIGNATURE: 'INVALID_FORMAT',
  COMPATIBLE: 'UNSUPPORTED_SETTING',
  UNSUPPORTED: 'UNSUPPORTED_SETTING',
  NOT_BOOTABLE: 'CONFLICT',
  BUSY: 'CONFLICT',
  NOT_FOUND: 'NOT_FOUND',
}

/** A refusal of the service as clients get it, with the service's own words; any other error as it is. */
export function agentRefusal(error: unknown): unknown {
  if (!(error instanceof AgentFailure)) return error
  return new ApiError(CODES[error.code] ?? 'SERVICE_UNAVAILABLE', error.message === '' ? error.code : error.message, error.code)
}

/** The answer is missing, cut off or none that can be understood. Clients get it as an INTERNAL_ERROR, like all that nobody has foreseen. */
export class AgentBroken extends Error {
  constructor(request: string, why: string) {
    super(`the system service did not answer "${request}": ${why}`)
    this.name = 'AgentBroken'
  }
}

export class SystemAgent {
  private readonly turnstile = new Turnstile(AT_ONCE, WAITING, () => {
    return new ApiError('SERVICE_UNAVAILABLE', 'The system service has too much to do', 'system', { 'Retry-After': '1' })
  })

  constructor(private readonly socketPath: string) {}

  /** Whether this is the appliance. */
  get available(): boolean {
    return lstatSync(this.socketPath, { throwIfNoEntry: false })?.isSocket() ?? false
  }

  /** Throws `UnsupportedSetting`, naming the field, where this is no appliance. */
  require(field = 'system'): void {
    if (!this.available) throw new UnsupportedSetting(field, 'Only the firmware image can do this; here nothing was changed')
  }

  /** As `ask`, but what the service refuses is thrown as clients get it. */
  async askForClient(words: readonly string[], options: AskOptions = {}): Promise<string[]> {
    try {
      return await this.ask(words, options)
    } catch (error) {
      throw agentRefusal(error)
    }
  }

  /**
   * The data lines. Throws `UnsupportedSetting`, `AgentFailure` or `AgentBroken`; SERVICE_UNAVAILABLE where too many ask; the signal's reason where
   * that ends it.
   */
  async ask(words: readonly string[], options: AskOptions = {}): Promise<string[]> {
    const request = words.join(' ')
    if (words.length === 0 || !words.every((word) => WORD.test(word)) || request.length >= MAX_REQUEST)
      throw new Error(`no request for the system service: ${JSON.stringify(request.slice(0, MAX_REQUEST))}`)
    this.require()
    options.signal?.throwIfAborted()
    return this.turnstile.pass(() => this.send(request, options), options.signal)
  }

  private send(request: string, { signal, timeoutMs = DEFAULT_TIMEOUT_MS, onProgress }: AskOptions): Promise<string[]> {
    return new Promise((resolve, reject) => {
      const socket = createConnection(this.socketPath)
      const answer = new Answer(onProgress)
      // Whatever comes first decides; closing the connection tells the service that nobody waits any more.
      const settle = (act: () => void) => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        socket.removeAllListeners('data').removeAllListeners('close')
        socket.destroy()
        act()
      }
      const fail = (error: unknown) => settle(() => reject(error))
      const onAbort = () => fail(signal?.reason)
      const timer = setTimeout(() => fail(new AgentBroken(request, `not within ${timeoutMs} ms`)), timeoutMs)
      signal?.addEventListener('abort', onAbort)
      socket.setEncoding('utf8')
      socket.on('error', (error) => fail(new AgentBroken(request, error.message)))
      socket.on('close', () => fail(new AgentBroken(request, 'the connection was closed')))
      socket.on('data', (text) => {
        try {
          const data = answer.take(String(text))
          if (data) settle(() => resolve(data))
        } catch (error) {
          fail(error instanceof MalformedAnswer ? new AgentBroken(request, error.message) : error)
        }
      })
      // The connection stays open both ways: its end would call the work off.
      socket.write(`${request}\n`)
    })
  }
}

class MalformedAnswer extends Error {}

/** Puts the answer together from what arrives. */
class Answer {
  private readonly data: string[] = []
  private rest = ''
  private size = 0

  constructor(private readonly onProgress: AskOptions['onProgress']) {}

  /** The data lines once the answer is complete. Throws `AgentFailure` where it says so. */
  take(text: string): string[] | null {
    this.size += text.length
    if (this.size > MAX_ANSWER) throw new MalformedAnswer(`more than ${MAX_ANSWER} characters`)
    const lines = (this.rest + text).split('\n')
    this.rest = lines.pop() ?? ''
    if (this.rest.length > MAX_LINE) throw new MalformedAnswer(`a line of more than ${MAX_LINE} characters`)
    for (const line of lines) if (this.line(line)) return this.data
    return null
  }

  /** True: it was the last one. */
  private line(line: string): boolean {
    const [, word, text = ''] = /^([a-z]+)(?: (.*))?$/.exec(line) ?? []
    switch (word) {
      case 'done':
        return true
      case 'data':
        this.data.push(text)
        return false
      case 'failed': {
        const [, code, message = ''] = /^([A-Z][A-Z0-9_]*)(?: (.*))?$/.exec(text) ?? []
        if (code === undefined) throw new MalformedAnswer(`"${line.slice(0, 80)}"`)
        throw new AgentFailure(code, message)
      }
      case 'progress': {
        const [, percent, what = ''] = /^(\d{1,3})(?: (.*))?$/.exec(text) ?? []
        if (percent !== undefined) this.onProgress?.(Math.min(100, Number(percent)) / 100, what)
        return false
      }
      default:
        throw new MalformedAnswer(`"${line.slice(0, 80)}"`)
    }
  }
}
