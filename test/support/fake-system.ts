/** The appliance's system service as the test wants it: a real Unix socket, the requests written down, the answers scripted. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** What the service says to one request, line by line; the last one is `done` or `failed …`. */
export interface Connection {
  /** One line. */
  say(line: string): void
  /** Whatever bytes, for answers that are none. */
  raw(text: string): void
  /** Breaks off. */
  close(): void
  /** Resolves when the client has gone. */
  readonly closed: Promise<void>
}

/** The lines of an answer, or what to do by hand. */
export type Answer = readonly string[] | ((args: readonly string[], connection: Connection) => unknown)

export interface FakeSystem {
  readonly socket: string
  /** All requests so far, as they came. */
  readonly requests: string[]
  /** Those that begin with this verb. */
  asked(verb: string): string[]
  /** From now on; verbs without an answer fail with `UNKNOWN`. */
  answer(verb: string, answer: Answer): void
}

export const DATA = (value: unknown): string => `data ${JSON.stringify(value)}`

export async function startFakeSystem(t: Test, answers: Readonly<Record<string, Answer>> = {}): Promise<FakeSystem> {
  const folder = mkdtempSync(join(tmpdir(), 'fake-system-'))
  const socket = join(folder, 'camera-system.sock')
  const table = new Map(Object.entries(answers))
  const requests: string[] = []
  const open = new Set<Socket>()
  const server = createServer((peer) => {
    open.add(peer)
    const closed = new Promise<void>((resolve) => {
      peer.on('close', () => {
        open.delete(peer)
        resolve()
      })
    })
    peer.on('error', () => undefined)
    peer.setEncoding('utf8')
    let request = ''
    peer.on('data', (text) => {
      request += text
      const end = request.indexOf('\n')
      if (end < 0) return
      peer.removeAllListeners('data')
      // Without it the end of the client would not be seen.
      peer.resume()
      void serve(request.slice(0, end), peer, closed)
    })
  })

  async function serve(line: string, peer: Socket, closed: Promise<void>): Promise<void> {
    requests.push(line)
    const [verb = '', ...args] = line.split(' ')
    const answer = table.get(verb) ?? [`failed UNKNOWN ${verb}`]
    const say = (text: string) => void (peer.writable && peer.write(`${text}\n`))
    if (typeof answer !== 'function') {
      for (const text of answer) say(text)
      peer.end()
      return
    }
    await answer(args, { say, raw: (text) => void peer.write(text), close: () => peer.destroy(), closed })
    peer.end()
  }

  await new Promise<void>((resolve) => server.listen(socket, resolve))
  t.teardown(async () => {
    for (const peer of open) peer.destroy()
    await new Promise((resolve) => server.close(resolve))
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    socket,
    requests,
    asked: (verb) => requests.filter((line) => line.split(' ')[0] === verb),
    answer: (verb, answer) => void table.set(verb, answer),
  }
}
