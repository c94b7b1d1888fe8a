/**
 * The audit log: who did what from where. It listens to the events of the domains and keeps those that matter, append-only, in a hash chain.
 * Entries are committed together a moment after they happened; a flood of failed logins costs one commit, not a thousand.
 */
import type { Bus, ServerEvent } from '../bus.ts'
import type { Component } from '../component.ts'
import { errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { Store, Table } from '../store/index.ts'
import { inTurns } from '../turns.ts'
import { type AuditEntry, ChainCheck, chained, FIRST_PREVIOUS } from './chain.ts'

const COMMIT_AFTER_MS = 100
const MAX_PENDING = 10_000
/** A name that was tried can be as long as a header. */
const MAX_TEXT = 64
/** The oldest go; the chain of the rest still holds. */
const MAX_ENTRIES = 200_000
const READ_BATCH = 500
/** What a camera sees and does by itself is no deed of anybody. */
const UNREMARKABLE = new Set(['camera.connected', 'camera.no_signal', 'camera.starting', 'motion', 'job.progress'])

export interface AuditQuery {
  readonly limit: number
  readonly offset: number
  readonly username?: string
  /** The beginning of the action, such as `auth` or `auth.login`. */
  readonly action?: string
  /** Epoch milliseconds, `from` inclusive. */
  readonly from?: number
  readonly to?: number
}

export class AuditLog implements Component {
  private table: Table<number, AuditEntry> | undefined
  private last: AuditEntry | undefined
  private pending: ServerEvent[] = []
  private dropped = 0
  private failing = false
  private timer: NodeJS.Timeout | undefined
  private readonly onEvent = (event: ServerEvent) => this.note(event)

  constructor(
    private readonly store: Store,
    private readonly bus: Bus,
    private readonly log: Logger,
    private readonly maxEntries = MAX_ENTRIES,
  ) {}

  start(): void {
    this.table = this.store.table('audit')
    for (const { value } of this.table.range({ reverse: true, limit: 1 })) this.last = value
    this.bus.on('event', this.onEvent)
  }

  stop(): void {
    this.bus.off('event', this.onEvent)
    this.commit()
    this.table = undefined
  }

  /** Newest first. With a filter all entries are looked at, in turns with everything else. */
  async list({ limit, offset, ...filter }: AuditQuery, signal?: AbortSignal): Promise<{ entries: AuditEntry[]; total: number }> {
    this.commit()
    if (Object.keys(filter).length === 0 && this.table) {
      const page = [...this.table.range({ reverse: true, limit, offset })]
      return { entries: page.map(({ value }) => value), total: this.table.count() }
    }
    const entries: AuditEntry[] = []
    let total = 0
    for await (const entry of inTurns(this.entries({ reverse: true }))) {
      if (signal?.aborted) break
      if (!matches(entry, filter)) continue
      if (total >= offset && entries.length < limit) entries.push(entry)
      total += 1
    }
    return { entries, total }
  }

  /** Checks the whole chain, in turns with everything else. */
  async verify(
    progress: (fraction: number) => void = () => {},
    signal?: AbortSignal,
  ): Promise<{ entries: number; broken_at: number | null }> {
    this.commit()
    const total = this.table?.count() ?? 0
    const check = new ChainCheck()
    let entries = 0
    for await (const entry of inTurns(this.entries({}))) {
      signal?.throwIfAborted()
      check.add(entry)
      entries += 1
      if (entries % 1000 === 0) progress(entries / total)
    }
    return { entries, broken_at: check.brokenAt }
  }

  /** Oldest first, for exports. Read in batches: whoever goes through them may take his time. */
  *entries({ reverse = false }: { reverse?: boolean }): Generator<AuditEntry> {
    for (let start = reverse ? Number.MAX_SAFE_INTEGER : 0; ; ) {
      const batch = [...(this.table?.range({ start, reverse, limit: READ_BATCH }) ?? [])]
      for (const { value } of batch) yield value
      if (batch.length < READ_BATCH) return
      start = (batch.at(-1)?.key ?? 0) + (reverse ? -1 : 1)
    }
  }

  private note(event: ServerEvent): void {
    if (UNREMARKABLE.has(event.category) || UNREMARKABLE.has(`${event.category}.${event.type}`)) return
    if (this.pending.length >= MAX_PENDING) {
      this.dropped += 1
      return
    }
    this.pending.push(event)
    this.timer ??= setTimeout(() => this.commit(), COMMIT_AFTER_MS)
  }

  private commit(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    const { table } = this
    if (!table || this.pending.length === 0) return
    const entries = this.chain(this.pending)
    try {
      this.store.transaction(() => {
        for (const entry of entries) table.put(entry.seq, entry)
        const oldest = (entries.at(-1)?.seq ?? 0) - this.maxEntries
        for (const key of [...table.keys({ end: oldest + 1 })]) table.remove(key)
      })
    } catch (error) {
      // A full disk: they stay pending, within their bound, and the next event tries again.
      if (!this.failing) this.log.error({ error: errorText(error) }, 'audit log cannot be written')
      this.failing = true
      return
    }
    this.failing = false
    this.last = entries.at(-1)
    this.pending = []
    this.dropped = 0
  }

  private chain(events: readonly ServerEvent[]): AuditEntry[] {
    const entries: AuditEntry[] = []
    const add = (action: string, event: ServerEvent | undefined, data: Readonly<Record<string, unknown>>) => {
      const before = entries.at(-1) ?? this.last
      const { username = null, address = null, ...rest } = data
      entries.push(
        chained({
          seq: (before?.seq ?? 0) + 1,
          timestamp: event?.timestamp ?? new Date().toISOString(),
          username: event?.actor?.username ?? textOrNull(username),
          address: event?.actor?.address ?? textOrNull(address),
          action,
          data: rest,
          previous: before?.hash ?? FIRST_PREVIOUS,
        }),
      )
    }
    for (const event of events) add(`${event.category}.${event.type}`, event, event.data)
    if (this.dropped > 0) add('audit.entries_lost', undefined, { count: this.dropped })
    return entries
  }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value.slice(0, MAX_TEXT) : null
}

function matches(entry: AuditEntry, { username, action, from, to }: Omit<AuditQuery, 'limit' | 'offset'>): boolean {
  const time = Date.parse(entry.timestamp)
  const named = action === undefined || entry.action === action || entry.action.startsWith(`${action}.`)
  return (
    named &&
    (username === undefined || entry.username === username) &&
    time >= (from ?? 0) &&
    time < (to ?? Number.POSITIVE_INFINITY)
  )
}
