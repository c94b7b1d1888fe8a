/**
 * A small RTSP client over interleaved TCP (RFC 2326, RFC 6184), to open many sessions, to time them, and to misbehave. Real players are
 * tested beside it.
 */
import { createHash } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { PATIENCE_MS } from './api.ts'
import { ADMIN_PASSWORD, type TestServer } from './server.ts'

const NAL_IDR = 5
const NAL_SPS = 7
const NAL_FU_A = 28
const NAL_STAP_A = 24

interface Reply {
  readonly status: number
  readonly headers: Map<string, string>
  readonly body: string
}

export class RtspClient extends EventEmitter<{ packet: [Buffer]; reply: [Reply]; end: [] }> {
  /** RTP packets so far; `keyFrames` counts pictures that decode on their own and have arrived whole. */
  packets = 0
  keyFrames = 0
  /** RTP packets of the sound, where that was set up. */
  soundPackets = 0
  /** RTCP has said that the pictures are over. */
  over = false
  /** `performance.now()` at the first whole key frame. */
  firstKeyFrameAt: number | null = null
  lastPacketAt = 0
  /** The longest pause between two packets so far, in milliseconds. */
  longestPause = 0
  private readonly socket: Socket
  private readonly uri: string
  private buffer: Buffer = Buffer.alloc(0)
  private sequence = 0
  private session = ''
  private challenge: { realm: string; nonce: string } | null = null
  private sawSps = false
  private inKeyFrame = false
  private lastSequence: number | null = null
  lost = 0

  private constructor(
    server: TestServer,
    path: string,
    private readonly user: string,
    private readonly password: string,
  ) {
    super()
    this.uri = `rtsp://127.0.0.1:${server.ports.rtsp}${path}`
    this.socket = connect(server.ports.rtsp, '127.0.0.1')
    this.socket.on('data', (chunk) => this.read(chunk))
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => this.emit('end'))
  }

  /** Connects and plays; throws with the status of the answer that refused. */
  static play(server: TestServer, path = '/stream1', user = 'admin', password = ADMIN_PASSWORD): Promise<RtspClient> {
    return RtspClient.open(server, path, user, password, false)
  }

  /** The pictures and the sound. */
  static playWithSound(server: TestServer, path = '/stream1'): Promise<RtspClient> {
    return RtspClient.open(server, path, 'admin', ADMIN_PASSWORD, true)
  }

  private static async open(
    server: TestServer,
    path: string,
    user: string,
    password: string,
    sound: boolean,
  ): Promise<RtspClient> {
    const client = new RtspClient(server, path, user, password)
    try {
      await once(client.socket, 'connect')
      await client.demand('DESCRIBE', client.uri, { Accept: 'application/sdp' })
      const setup = await client.demand('SETUP', `${client.base}/stream=0`, { Transport: 'RTP/AVP/TCP;unicast;interleaved=0-1' })
      client.session = setup.headers.get('session')?.split(';')[0] ?? ''
      if (sound) await client.setUpSound()
      await client.demand('PLAY', client.uri, { Range: 'npt=0-' })
      return client
    } catch (error) {
      client.close()
      throw error
    }
  }

  /** It is sent from the next PLAY on. */
  async setUpSound(): Promise<void> {
    await this.demand('SETUP', `${this.base}/stream=1`, { Transport: 'RTP/AVP/TCP;unicast;interleaved=2-3' })
  }

  /** A request about what it plays, whatever the answer. */
  ask(method: string, headers: Record<string, string> = {}): Promise<Reply> {
    if (method === 'PLAY') this.over = false
    return this.request(method, this.uri, headers)
  }

  /** Resolves when `count` key frames have arrived whole. */
  async gotKeyFrames(count = 1, timeoutMs = PATIENCE_MS): Promise<void> {
    const signal = AbortSignal.timeout(timeoutMs)
    while (this.keyFrames < count) await once(this, 'packet', { signal })
  }

  async gotPackets(count: number, timeoutMs = PATIENCE_MS): Promise<void> {
    const signal = AbortSignal.timeout(timeoutMs)
    while (this.packets < count) await once(this, 'packet', { signal })
  }

  /** Stops taking bytes, as a client that hangs. */
  stall(): void {
    this.socket.pause()
  }

  get closed(): boolean {
    return this.socket.destroyed
  }

  /** Says goodbye as a good client does. */
  async teardown(): Promise<void> {
    const gone = once(this.socket, 'close')
    await this.request('TEARDOWN', this.uri, {})
    this.close()
    await gone
  }

  close(): void {
    this.socket.destroy()
  }

  private get base(): string {
    return this.uri.split('?')[0] ?? ''
  }

  private async demand(method: string, uri: string, headers: Record<string, string>): Promise<Reply> {
    let reply = await this.request(method, uri, headers)
    const challenge = /Digest.*realm="([^"]*)".*nonce="([^"]*)"/.exec(reply.headers.get('www-authenticate') ?? '')
    if (reply.status === 401 && challenge && !this.challenge) {
      this.challenge = { realm: challenge[1] ?? '', nonce: challenge[2] ?? '' }
      reply = await this.request(method, uri, headers)
    }
    if (reply.status !== 200) throw new Error(`${method}: ${reply.status}`)
    return reply
  }

  private async request(method: string, uri: string, headers: Record<string, string>): Promise<Reply> {
    this.sequence += 1
    const all: Record<string, string> = { CSeq: String(this.sequence), ...headers }
    if (this.session) all.Session = this.session
    if (this.challenge) all.Authorization = this.authorization(method, uri)
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
    this.socket.write(`${method} ${uri} RTSP/1.0\r\n${lines.join('')}\r\n`)
    const answered = once(this, 'reply', { signal: AbortSignal.timeout(PATIENCE_MS) }) as Promise<[Reply]>
    const ended = once(this, 'end').then(() => Promise.reject(new Error(`${method}: connection closed`)))
    const [reply] = await Promise.race([answered, ended])
    answered.catch(() => undefined)
    ended.catch(() => undefined)
    return reply
  }

  private authorization(method: string, uri: string): string {
    const md5 = (text: string) => createHash('md5').update(text).digest('hex')
    const { realm, nonce } = this.challenge ?? { realm: '', nonce: '' }
    const response = md5(`${md5(`${this.user}:${realm}:${this.password}`)}:${nonce}:${md5(`${method}:${uri}`)}`)
    return `Digest username="${this.user}", realm="${realm}", nonce="${nonce}", uri="${uri}", response="${response}"`
  }

  private read(chunk: Buffer): void {
    this.buffer = this.buffer.length === 0 ? chunk : Buffer.concat([this.buffer, chunk])
    for (;;) {
      const taken = this.buffer[0] === 0x24 ? this.readInterleaved() : this.readReply()
      if (taken === 0) return
      this.buffer = this.buffer.subarray(taken)
    }
  }

  private readInterleaved(): number {
    if (this.buffer.length < 4) return 0
    const length = this.buffer.readUInt16BE(2)
    if (this.buffer.length < 4 + length) return 0
    if (this.buffer[1] === 1) this.over ||= saysGoodbye(this.buffer.subarray(4, 4 + length))
    if (this.buffer[1] === 2) this.soundPackets += 1
    if (this.buffer[1] === 0) this.rtp(this.buffer.subarray(4, 4 + length))
    return 4 + length
  }

  private readReply(): number {
    const end = this.buffer.indexOf('\r\n\r\n')
    if (end < 0) return 0
    const [first = '', ...lines] = this.buffer.toString('latin1', 0, end).split('\r\n')
    // Several challenges come as several headers; Digest is the one we answer.
    const headers = new Map<string, string>()
    for (const line of lines) {
      const [, name = '', value = ''] = /^([^:]+): *(.*)$/.exec(line) ?? []
      const key = name.toLowerCase()
      if (!headers.get(key)?.startsWith('Digest')) headers.set(key, value)
    }
    const length = Number(headers.get('content-length') ?? 0)
    if (this.buffer.length < end + 4 + length) return 0
    const body = this.buffer.toString('latin1', end + 4, end + 4 + length)
    this.emit('reply', { status: Number(first.split(' ')[1]), headers, body })
    return end + 4 + length
  }

  private rtp(packet: Buffer): void {
    const now = performance.now()
    if (this.lastPacketAt > 0) this.longestPause = Math.max(this.longestPause, now - this.lastPacketAt)
    this.lastPacketAt = now
    this.packets += 1
    const sequence = packet.readUInt16BE(2)
    if (this.lastSequence !== null) this.lost += (sequence - this.lastSequence - 1) & 0xffff
    this.lastSequence = sequence
    this.watchKeyFrame(packet.subarray(12), ((packet[1] ?? 0) & 0x80) !== 0, now)
    this.emit('packet', packet)
  }

  private watchKeyFrame(payload: Buffer, marker: boolean, now: number): void {
    for (const type of nalTypes(payload)) {
      if (type === NAL_SPS) this.sawSps = true
      if (type === NAL_IDR && this.sawSps) this.inKeyFrame = true
    }
    if (!marker) return
    if (this.inKeyFrame) {
      this.keyFrames += 1
      this.firstKeyFrameAt ??= now
    }
    this.inKeyFrame = false
  }
}

/** Types of the NAL units (or of the one that a fragment belongs to) in an RTP payload. */
function nalTypes(payload: Buffer): number[] {
  const type = (payload[0] ?? 0) & 0x1f
  if (type === NAL_FU_A) return [(payload[1] ?? 0) & 0x1f]
  if (type !== NAL_STAP_A) return [type]
  const types: number[] = []
  for (let at = 1; at + 2 < payload.length; at += 2 + payload.readUInt16BE(at)) types.push((payload[at + 2] ?? 0) & 0x1f)
  return types
}

/** Is there a BYE among the packets of an RTCP compound? */
function saysGoodbye(compound: Buffer): boolean {
  for (let at = 0; at + 4 <= compound.length; at += 4 * (compound.readUInt16BE(at + 2) + 1)) {
    if (compound[at + 1] === 203) return true
  }
  return false
}
