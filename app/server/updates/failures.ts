/** Updates that did not hold: the boot loader went back to the release before. Each is told once, and can be asked for until it is dismissed. */
import type { Bus } from '../bus.ts'
import type { Logger } from '../log.ts'
import type { SystemAgent } from '../platform/index.ts'
import type { Store } from '../store/index.ts'
import { objectOf, parseJson } from './bundle.ts'

const STAGES = ['loader', 'kernel', 'userspace', 'server'] as const
const MAX_FAILURES = 10
const MAX_LINES = 50
const MAX_LINE = 1000
const KEY = 'updateFailuresTold'

export interface Failure {
  readonly slot: string
  readonly version: string | null
  /** ISO 8601. */
  readonly installed: string | null
  readonly detected: string | null
  readonly attempts: number | null
  /** How far the new release came. */
  readonly stage: (typeof STAGES)[number] | null
  readonly reason: string | null
  /** The last lines of its journal. */
  readonly log: readonly string[]
}

export function parseFailure(line: string): Failure | null {
  const value = objectOf(parseJson(line))
  if (value === null || typeof value.slot !== 'string') return null
  const text = (name: string): string | null => {
    const found = value[name]
    return typeof found === 'string' && found !== '' ? found.slice(0, MAX_LINE) : null
  }
  const lines = Array.isArray(value.log) ? value.log.filter((entry): entry is string => typeof entry === 'string') : []
  return {
    slot: value.slot,
    version: text('version'),
    installed: text('installed'),
    detected: text('detected'),
    attempts: typeof value.attempts === 'number' ? value.attempts : null,
    stage: STAGES.find((stage) => stage === value.stage) ?? null,
    reason: text('reason'),
    log: lines.slice(-MAX_LINES).map((entry) => entry.slice(0, MAX_LINE)),
  }
}

export class Failures {
  constructor(
    private readonly agent: SystemAgent,
    private readonly store: Store,
    private readonly bus: Bus,
    private readonly log: Logger,
  ) {}

  /** Newest first. */
  async list(signal?: AbortSignal): Promise<Failure[]> {
    const lines = await this.agent.askForClient(['failures'], signal ? { signal } : {})
    return lines
      .map(parseFailure)
      .filter((failure) => failure !== null)
      .slice(0, MAX_FAILURES)
  }

  async dismiss(): Promise<void> {
    await this.agent.askForClient(['dismiss-failures'])
    this.bus.publish('config', 'update_failures_dismissed', {})
  }

  /** Those that nobody has been told of: into the log, and to whoever listens to alerts. */
  async tell(signal: AbortSignal): Promise<void> {
    const table = this.store.table<string, unknown>('settings')
    const stored = table.get(KEY)
    const told = Array.isArray(stored) ? stored : []
    const failures = await this.list(signal)
    const fresh = failures.filter((failure) => !told.includes(identity(failure)))
    if (fresh.length === 0) return
    // First remembered: an alert that comes again with every start would soon be ignored.
    this.store.transaction(() => table.put(KEY, failures.map(identity)))
    for (const { log: lines, ...failure } of fresh.reverse()) {
      this.log.error({ ...failure, log: lines }, 'an update failed: the release before runs again')
      this.bus.publish('alert', 'update_failed', failure)
    }
  }
}

function identity({ slot, version, detected }: Failure): string {
  return `${slot} ${version} ${detected}`
}
