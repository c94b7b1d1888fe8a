/** The one event bus. Domains tell each other what happened; the WebSocket passes the same events on to its subscribers. */
import { EventEmitter } from 'node:events'

export const EVENT_CATEGORIES = ['camera', 'recording', 'motion', 'alert', 'config', 'auth', 'job'] as const
export type EventCategory = (typeof EVENT_CATEGORIES)[number]

/** As it goes out on the WebSocket. `timestamp` is ISO 8601. */
export interface ServerEvent {
  readonly category: EventCategory
  readonly type: string
  readonly timestamp: string
  readonly data: Readonly<Record<string, unknown>>
}

interface BusEvents {
  /** Something that users may subscribe to. */
  event: [ServerEvent]
  /** A state key has a new value. */
  state: [{ key: string; value: unknown }]
  /** The users or their RTSP secrets changed: the helper's table must follow. */
  'users-changed': []
  /** A session has ended before its time (logout, password change): open connections of it must close. */
  'session-ended': [{ sessionId: string }]
}

export class Bus extends EventEmitter<BusEvents> {
  constructor() {
    super()
    this.setMaxListeners(50)
  }

  publish(category: EventCategory, type: string, data: Record<string, unknown>): void {
    this.emit('event', { category, type, timestamp: new Date().toISOString(), data })
  }
}
