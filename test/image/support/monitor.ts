/** QEMU's monitor protocol (QMP) on the standard streams of its process. */
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { Json } from '../../support/api.ts'

const POLL_MS = 100
/** A gigabyte onto a slow disc. */
const SAVE_LIMIT_MS = 120_000
const UNLIMITED = 2 ** 40

/** To go behind QEMU's other arguments. */
export const MONITOR_ARGS = ['-qmp', 'stdio']

/** Arguments of a machine that goes on where the one that was saved into the file stopped. */
export function resumeArgs(state: string): string[] {
  return ['-incoming', `exec:cat ${quoted(state)}`]
}

export class Monitor {
  #asked = 0
  #received = ''
  readonly #waiting = new Map<number, { resolve(value: Json): void; reject(error: Error): void }>()
  readonly #ready: Promise<Json>

  constructor(
    private readonly to: Writable,
    from: Readable,
  ) {
    to.on('error', () => undefined)
    from.setEncoding('utf8').on('data', (text: string) => this.#take(text))
    from.on('close', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('QEMU has ended'))
      this.#waiting.clear()
    })
    this.#ready = this.#ask('qmp_capabilities', {})
    this.#ready.catch(() => undefined)
  }

  async execute(command: string, options: object = {}): Promise<Json> {
    await this.#ready
    return this.#ask(command, options)
  }

  /** Writes memory and devices to the file, while the machine runs on; from the end of that on it stands still. */
  async save(file: string): Promise<void> {
    await this.execute('migrate-set-parameters', { 'max-bandwidth': UNLIMITED })
    await this.execute('migrate', { uri: `exec:cat > ${quoted(file)}` })
    const deadline = performance.now() + SAVE_LIMIT_MS
    for (;;) {
      const { status, ...more } = await this.execute('query-migrate')
      if (String(status) === 'completed') return
      if (String(status) === 'failed' || performance.now() > deadline) {
        throw new Error(`the machine is not saved: ${status} ${JSON.stringify(more)}`)
      }
      await delay(POLL_MS)
    }
  }

  #ask(command: string, options: object): Promise<Json> {
    const id = ++this.#asked
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.to.write(`${JSON.stringify({ execute: command, arguments: options, id })}\n`)
    })
  }

  /** One object a line; greetings and events have no number and are nobody's answer. */
  #take(text: string): void {
    const lines = (this.#received + text).split('\n')
    this.#received = lines.pop() ?? ''
    for (const line of lines) {
      const answer = JSON.parse(line)
      const asked = this.#waiting.get(answer.id)
      if (!asked) continue
      this.#waiting.delete(answer.id)
      if (answer.error) asked.reject(new Error(`${answer.error.class}: ${answer.error.desc}`))
      else asked.resolve(answer.return)
    }
  }
}

/** For the shell that QEMU starts. */
function quoted(file: string): string {
  return `'${file.replaceAll("'", "'\\''")}'`
}
