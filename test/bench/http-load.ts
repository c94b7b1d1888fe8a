/**
 * The load: one process, some connections, one request after the other on each. Light, so that the server is what is measured. Takes its
 * job as JSON, prints what it saw as JSON.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export interface Job {
  readonly port: number
  readonly authorization: string
  readonly connections: number
  readonly ms: number
}

export interface Seen {
  readonly requests: number
  readonly seconds: number
  readonly p50_ms: number
  readonly p99_ms: number
  readonly max_ms: number
  /** The last body. */
  readonly body: string
}

class Client {
  body = ''
  readonly times: number[] = []
  #socket: Socket | undefined
  #sent = 0

  constructor(
    readonly port: number,
    readonly request: Buffer,
  ) {}

  async run(until: number): Promise<void> {
    const socket = connect(this.port, '127.0.0.1')
    this.#socket = socket
    socket.setNoDelay(true)
    await once(socket, 'connect')
    const closed = once(socket, 'close')
    let rest = ''
    socket.on('data', (data) => {
      rest += data.toString('latin1')
      const head = rest.indexOf('\r\n\r\n')
      if (head < 0) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(rest)?.[1])
      if (rest.length < head + 4 + length) return
      if (!rest.startsWith('HTTP/1.1 200')) throw new Error(rest)
      this.body = rest.slice(head + 4)
      rest = ''
      const now = performance.now()
      this.times.push(now - this.#sent)
      if (now < until) this.#ask(now)
      else socket.end()
    })
    this.#ask(performance.now())
    await closed
  }

  #ask(now: number): void {
    this.#sent = now
    this.#socket?.write(this.request)
  }
}

const job = JSON.parse(process.argv[2] ?? '') as Job
const request = Buffer.from(`GET /api/status HTTP/1.1\r\nHost: camera\r\nAuthorization: ${job.authorization}\r\n\r\n`)
const clients = Array.from({ length: job.connections }, () => new Client(job.port, request))
const began = performance.now()
await Promise.all(clients.map((client) => client.run(began + job.ms)))
const seconds = (performance.now() - began) / 1000
const times = clients.flatMap((client) => client.times).sort((a, b) => a - b)
const at = (share: number) => Math.round((times[Math.ceil(share * times.length) - 1] ?? Number.NaN) * 100) / 100
const seen: Seen = {
  requests: times.length,
  seconds,
  p50_ms: at(0.5),
  p99_ms: at(0.99),
  max_ms: at(1),
  body: clients[0]?.body ?? '',
}
process.stdout.write(JSON.stringify(seen))
