/** The one event bus. Domains tell each other what happened; the WebSocket passes the same events on to its subscribers. */
import { EventEmitter } from 'node:events'
import { type Actor, currentActor } from './actor.ts'
import type { Section, SectionValues } from './config/index.ts'
import type { RecordingRow } from './recording/index.ts'

export const EVENT_CATEGORIES = ['camera', 'recording', 'motion', 'alert', 'config', 'auth', 'job', 'file'] as const
export type EventCategory = (typeof EVENT_CATEGORIES)[number]

/** `timestamp` is ISO 8601. All but `actor` goes out on the WebSocket. */
export interface ServerEvent {
  readonly category: EventCategory
  readonly type: string
  readonly timestamp: string
  readonly data: Readonly<Record<string, unknown>>
  /** Who caused it, for the audit log. */
  readonly actor?: Actor
}

/** A section of the configuration that has just come into force. */
export type ConfigChanged = {
  [S in Section]: { readonly section: S; readonly value: SectionValues[S]; readonly previous: SectionValues[S] }
}[Section]

interface BusEvents {
  /** Something that users may subscribe to. */
  event: [ServerEvent]
  /** A state key has a new value. */
  state: [{ key: string; value: unknown }]
  /** The users or their RTSP secrets changed: the helper's table must follow. */
  'users-changed': []
  /** A session has ended before its time (logout, password change): open connections of it must close. */
  'session-ended': [{ sessionId: string }]
  /**
   * An account lost a right, got another password, or is gone: all that it has opened must close, whatever the credentials were, but what
   * belongs to the session `keep`.
   */
  'user-changed': [{ username: string; keep?: string }]
  /** An account or an address was locked or unlocked: the helper's list must follow. */
  'lockout-changed': []
  /** A recording has been judged and entered: it may be hashed, copied, shown. */
  'recording-finished': [RecordingRow]
  /** The rules say otherwise whether the past of cameras is kept. */
  'pre-roll-changed': []
  /** The wall clock jumped, by so much more than time went by. `synchronised`: it may be believed now. */
  'clock-stepped': [{ delta_ms: number; synchronised: boolean }]
  /** From now on the wall clock may be believed; a step that came with it has been told before. */
  'clock-synchronised': []
  /** Acts already, and is stored. */
  'config-changed': [ConfigChanged]
}

export class Bus extends EventEmitter<BusEvents> {
  constructor() {
    super()
    this.setMaxListeners(50)
  }

  publish(category: EventCategory, type: string, data: Record<string, unknown>): void {
    const actor = currentActor()
    this.emit('event', { category, type, timestamp: new Date().toISOString(), data, ...(actor ? { actor } : {}) })
  }
}
