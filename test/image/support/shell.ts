/**
 * A root shell in the machine, for the tests alone: the image knows nothing of it. systemd takes the unit from a credential that QEMU hands in as an
 * SMBIOS string (extra units and drop-ins by credential: systemd 256 and newer), and the shell talks over a port of virtio-serial.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** Where QEMU's serial port of that name appears in the machine. */
const DEVICE = '/dev/virtio-ports/shell'

const UNIT = `[Unit]
Description=Shell of the test
DefaultDependencies=no
Conflicts=shutdown.target
Before=shutdown.target
StartLimitIntervalSec=0

[Service]
Environment=HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=/bin/sh -c 'exec /bin/sh <>${DEVICE} >&0 2>&0'
Restart=always
RestartSec=1
`

/** SMBIOS string by which systemd gets a credential. */
export function credential(name: string, content: string): string {
  return `io.systemd.credential.binary:${name}=${Buffer.from(content).toString('base64')}`
}

export const SHELL_CREDENTIALS: readonly string[] = [
  credential('systemd.extra-unit.test-shell.service', UNIT),
  credential('systemd.unit-dropin.sysinit.target~50-test-shell', '[Unit]\nWants=test-shell.service\n'),
]

export interface Result {
  readonly status: number
  /** Standard output and standard error as they came, without the line break at the end. */
  readonly output: string
}

const MAX_OUTPUT = 8 << 20

let commands = 0

/** What the shell is told for one command; `mark` is a word that occurs nowhere else. The command reads nothing. */
export function framed(command: string, mark: string): string {
  return `/bin/sh -c "$(cat <<'${mark}'\n${command}\n${mark}\n)" </dev/null 2>&1; printf '\\n${mark} %d\\n' $?\n`
}

/** The answer to a framed command, as soon as it is whole. */
export function unframed(received: string, mark: string): Result | undefined {
  const end = received.lastIndexOf(`\n${mark} `)
  const status = /^\n\S+ (\d+)\n/.exec(received.slice(end))
  if (end < 0 || !status) return undefined
  return { status: Number(status[1]), output: received.slice(0, end).replace(/\n+$/, '') }
}

/** One connection to the shell's socket; commands run one after the other. */
export class Shell {
  #socket: Socket | undefined
  #queue: Promise<unknown> = Promise.resolve()

  constructor(private readonly socketPath: string) {}

  /** Waits for the shell to be there as well: right after the start of the machine that takes as long as the boot. */
  run(command: string, limitMs = 60_000): Promise<Result> {
    const result = this.#queue.then(() => this.#run(command, limitMs))
    this.#queue = result.catch(() => undefined)
    return result
  }

  /** Without anybody at the other end the shell ends at once, again and again, which takes time from everything else. */
  attach(limitMs: number): void {
    this.#queue = this.#queue.then(() => this.#connected(AbortSignal.timeout(limitMs))).catch(() => undefined)
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
  }

  async #run(command: string, limitMs: number): Promise<Result> {
    const signal = AbortSignal.timeout(limitMs)
    const mark = `end-of-command-${process.pid}-${++commands}`
    try {
      return await answer(await this.#connected(signal), framed(command, mark), mark, signal)
    } catch (error) {
      // What may still come belongs to no command.
      this.close()
      throw new Error(`the shell did not finish \`${command}\` within ${limitMs} ms`, { cause: error })
    }
  }

  /** QEMU makes its socket a moment after its start. */
  async #connected(signal: AbortSignal): Promise<Socket> {
    while (!this.#socket || this.#socket.destroyed) {
      const socket = connect(this.socketPath).setEncoding('utf8')
      socket.on('error', () => undefined)
      try {
        await once(socket, 'connect', { signal })
        this.#socket = socket
      } catch (error) {
        socket.destroy()
        if (signal.aborted) throw error
        await delay(50, undefined, { signal })
      }
    }
    return this.#socket
  }
}

function answer(socket: Socket, command: string, mark: string, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    let received = ''
    const settled = () => {
      socket.off('data', take)
      socket.off('close', closed)
      signal.removeEventListener('abort', aborted)
    }
    const failed = (why: string) => {
      settled()
      reject(new Error(`${why}; so far: ${received.slice(-2000)}`))
    }
    const closed = () => failed('the machine ended')
    const aborted = () => failed('too slow')
    const take = (text: string) => {
      received += text
      if (received.length > MAX_OUTPUT) return failed('too much output')
      const result = unframed(received, mark)
      if (!result) return
      settled()
      resolve(result)
    }
    socket.on('data', take)
    socket.on('close', closed)
    signal.addEventListener('abort', aborted)
    if (signal.aborted) return aborted()
    socket.write(command)
  })
}
