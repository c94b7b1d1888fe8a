/**
 * A quick look from the cable outwards: link, address, gateway, name server, internet. It needs no rights, sends next to nothing, and is over
 * within five seconds whatever the network does.
 */
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { createConnection, isIP } from 'node:net'
import { Conflict, errorText } from '../errors.ts'
import type { NetworkReader } from '../platform/index.ts'

export const SELF_TEST_STEPS = ['link', 'address', 'gateway', 'dns', 'internet'] as const

/** `unknown`: could not be told, such as the internet where no server to ask is known. */
export interface SelfTestStep {
  readonly name: (typeof SELF_TEST_STEPS)[number]
  readonly status: 'ok' | 'failed' | 'unknown'
  readonly ms: number
  /** What was looked at, and what it said. */
  readonly details: string
}

export interface SelfTestReport {
  readonly success: boolean
  readonly duration_ms: number
  readonly tests: readonly SelfTestStep[]
}

type Finding = Pick<SelfTestStep, 'status' | 'details'>

const TOTAL_MS = 5000
const GATEWAY_MS = 1200
const DNS_MS = 1500
const INTERNET_MS = 1500
/** One that most routers serve; a refusal is an answer as well. */
const GATEWAY_PORT = 80
const HTTPS_PORT = 443
const NTP_PORT = 123
/** Version 4, mode client, all else zero. */
const NTP_REQUEST = Buffer.concat([Buffer.of(0x23), Buffer.alloc(47)])
/** Codes of `connect` which say that somebody is there, and that nobody is. */
const ANSWERED: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ECONNRESET'])
const UNREACHABLE: ReadonlySet<string> = new Set(['EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN'])

export class NetworkSelfTest {
  private running = false

  constructor(
    private readonly reader: NetworkReader,
    private readonly totalMs = TOTAL_MS,
  ) {}

  /** `host`: the name to resolve and to reach instead of the time server. */
  async run(host: string | undefined, signal: AbortSignal): Promise<SelfTestReport> {
    if (this.running) throw new Conflict('A network test is running')
    this.running = true
    const began = performance.now()
    const bound = AbortSignal.any([signal, AbortSignal.timeout(this.totalMs)])
    try {
      const [server] = this.reader.timeServers()
      const target = host ?? server
      const link = await timed('link', () => this.link())
      const address = await timed('address', () => this.address())
      const gateway = timed('gateway', () => this.gateway(bound))
      let reached: string | undefined
      const dns = await timed('dns', async () => {
        const { address: found, ...finding } = await resolved(target, bound)
        reached = found
        return finding
      })
      const internet = await timed('internet', () => beyond(reached, host === undefined, bound))
      const tests = [link, address, await gateway, dns, internet]
      // Without a way out a camera still serves its own network.
      const success = tests.every(({ name, status }) => status !== 'failed' || name === 'internet')
      return { success, duration_ms: Math.round(performance.now() - began), tests }
    } finally {
      this.running = false
    }
  }

  private link(): Finding {
    const candidates = this.reader.interfaces().filter(({ type }) => type !== 'loopback')
    const up = candidates.filter(({ carrier }) => carrier === true).map(({ name }) => name)
    return up.length > 0
      ? { status: 'ok', details: up.join(', ') }
      : { status: 'failed', details: candidates.length === 0 ? 'There is no interface' : 'No interface has a carrier' }
  }

  private address(): Finding {
    const outside = this.reader.interfaces().filter(({ type }) => type !== 'loopback')
    const all = outside.flatMap(({ ipv4, ipv6 }) => [...ipv4, ...ipv6])
    const routable = all.filter(({ address }) => !/^169\.254\.|^fe[89ab]/i.test(address))
    if (routable.length > 0) return { status: 'ok', details: routable.map(({ address }) => address).join(', ') }
    return { status: 'failed', details: all.length === 0 ? 'No interface has an address' : 'Only link-local addresses' }
  }

  private async gateway(signal: AbortSignal): Promise<Finding> {
    const gateway = this.reader.defaultRoute()?.gateway ?? this.reader.ipv6DefaultRoute()?.gateway
    if (gateway === undefined) return { status: 'unknown', details: 'There is no default route' }
    const outcome = await connects(gateway, GATEWAY_PORT, GATEWAY_MS, signal)
    if (outcome === 'timeout' && this.reader.tables.neighbourKnown(gateway))
      return { status: 'ok', details: `${gateway} is a known neighbour` }
    return outcome === 'answered'
      ? { status: 'ok', details: `${gateway} answers` }
      : { status: 'failed', details: `${gateway} does not answer` }
  }
}

async function timed(name: SelfTestStep['name'], look: () => Finding | Promise<Finding>): Promise<SelfTestStep> {
  const began = performance.now()
  const finding = await look()
  return { name, ms: Math.round((performance.now() - began) * 10) / 10, ...finding }
}

async function resolved(host: string | undefined, signal: AbortSignal): Promise<Finding & { address?: string }> {
  if (host === undefined) return { status: 'unknown', details: 'No time server is known: name a host to resolve' }
  if (isIP(host)) return { status: 'unknown', details: `${host} is an address already`, address: host }
  const resolver = new Resolver({ timeout: DNS_MS, tries: 1 })
  const stop = () => resolver.cancel()
  signal.addEventListener('abort', stop)
  try {
    if (signal.aborted) return { status: 'failed', details: 'The test took too long' }
    const addresses = await Promise.any([resolver.resolve4(host), resolver.resolve6(host)])
    const address = addresses[0]
    if (address === undefined) return { status: 'failed', details: `${host} has no address` }
    return { status: 'ok', details: `${host} is ${addresses.join(', ')}`, address }
  } catch (error) {
    const [cause] = error instanceof AggregateError ? error.errors : [error]
    return { status: 'failed', details: errorText(cause) }
  } finally {
    signal.removeEventListener('abort', stop)
    resolver.cancel()
  }
}

async function beyond(address: string | undefined, timeServer: boolean, signal: AbortSignal): Promise<Finding> {
  if (address === undefined) return { status: 'unknown', details: 'There is no address to ask' }
  if (timeServer) {
    const answered = await answersNtp(address, signal)
    return { status: answered ? 'ok' : 'failed', details: `${address} ${answered ? 'tells' : 'does not tell'} the time` }
  }
  const outcome = await connects(address, HTTPS_PORT, INTERNET_MS, signal)
  const good = outcome === 'answered'
  return { status: good ? 'ok' : 'failed', details: `${address} ${good ? 'answers' : 'does not answer'} on port ${HTTPS_PORT}` }
}

function connects(
  host: string,
  port: number,
  ms: number,
  signal: AbortSignal,
): Promise<'answered' | 'unreachable' | 'timeout' | 'failed'> {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port })
    const end = (outcome: 'answered' | 'unreachable' | 'timeout' | 'failed') => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      socket.destroy()
      resolve(outcome)
    }
    const onAbort = () => end('timeout')
    const timer = setTimeout(onAbort, ms)
    socket.on('connect', () => end('answered'))
    socket.on('error', ({ code = '' }: NodeJS.ErrnoException) => {
      end(ANSWERED.has(code) ? 'answered' : UNREACHABLE.has(code) ? 'unreachable' : 'failed')
    })
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
  })
}

function answersNtp(address: string, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4')
    const end = (answered: boolean) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      socket.removeAllListeners().on('error', () => {})
      socket.close()
      resolve(answered)
    }
    const onAbort = () => end(false)
    const timer = setTimeout(onAbort, INTERNET_MS)
    socket.on('error', () => end(false))
    // Connected: only what comes from there is taken, and a refusal is an error.
    socket.connect(NTP_PORT, address, () => socket.send(NTP_REQUEST))
    socket.on('message', () => end(true))
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
  })
}
