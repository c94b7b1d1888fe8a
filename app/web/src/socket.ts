/** The WebSocket of the state interface: follows every key, sets keys, brings events, and comes back after a loss. */
import { call } from './api.ts'
import { backoffMs } from './backoff.ts'
import type { ServerEvent, StateKeys } from './types.ts'

export interface SocketListener {
  online(online: boolean): void
  keys(change: StateKeys): void
  event(event: ServerEvent): void
  failed(message: string): void
}

const EVENTS = ['recording', 'camera', 'alert']

export class StateSocket {
  private socket: WebSocket | null = null
  private timer = 0
  private attempt = 0
  private stopped = false

  constructor(private readonly listener: SocketListener) {}

  start(): void {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws'
    const socket = new WebSocket(`${scheme}://${location.host}/api/v1`)
    this.socket = socket
    let opened = false
    socket.onopen = () => {
      opened = true
      this.attempt = 0
      socket.send(JSON.stringify({ subscribe: EVENTS }))
      this.listener.online(true)
    }
    socket.onmessage = ({ data }) => this.receive(String(data))
    socket.onclose = () => this.closed(opened)
  }

  stop(): void {
    this.stopped = true
    clearTimeout(this.timer)
    this.socket?.close()
  }

  /** False when there is no connection to send it on. */
  set(change: StateKeys): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false
    this.socket.send(JSON.stringify(change))
    return true
  }

  private receive(text: string): void {
    const message = JSON.parse(text) as StateKeys & { event?: ServerEvent; error?: { message: string } }
    if (message.event) this.listener.event(message.event)
    else if (message.error) this.listener.failed(message.error.message)
    else this.listener.keys(message)
  }

  private closed(opened: boolean): void {
    if (this.stopped) return
    this.listener.online(false)
    // A refused upgrade tells no reason to scripts; if the session is over, this call finds out.
    if (!opened) call('GET', '/api/status').catch(() => undefined)
    this.timer = window.setTimeout(() => this.start(), backoffMs(this.attempt))
    this.attempt += 1
  }
}
