/**
 * Jobs: work that takes longer than a request may. One of a kind runs at a time; each is bounded in time, can be cancelled, tells its progress,
 * and is remembered with its outcome. A job that the server's end has cut off is `interrupted` after the next start.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { currentActor } from '../actor.ts'
import type { Bus } from '../bus.ts'
import { type Caller, ROLES, type Role } from '../caller.ts'
import type { Component } from '../component.ts'
import { ApiError, Conflict, errorText, NotFound } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { Store, Table } from '../store/index.ts'
import { type JobStatus, type JobTrigger, nextJobStatus } from './machine.ts'

export type { JobStatus } from './machine.ts'

export interface JobError {
  readonly code: string
  readonly message: string
  readonly details: string
}

/** Times are ISO 8601; `progress` is a fraction from 0 to 1. */
export interface Job {
  readonly id: string
  readonly kind: string
  readonly status: JobStatus
  readonly progress: number
  readonly message: string | null
  readonly started: string
  readonly ended: string | null
  /** Who started it; null: the device itself. */
  readonly username: string | null
  /** The least role that may see and cancel it. */
  readonly role: Role
  readonly result: unknown
  readonly error: JobError | null
}

/** What the work gets. It must look at `signal` and clean up behind itself before it ends. */
export interface JobContext {
  readonly id: string
  readonly signal: AbortSignal
  progress(fraction: number, message?: string): void
}

export interface JobOptions {
  readonly limitMs?: number
  readonly role?: Role
}

interface Running {
  job: Job
  readonly controller: AbortController
  readonly ended: Promise<unknown>
  toldAt: number
}

const DEFAULT_LIMIT_MS = 60 * 60_000
const HISTORY = 200
const PROGRESS_EVERY_MS = 250
/** What a cancelled job may take to clean up before the answer goes out without its end. */
const CANCEL_PATIENCE_MS = 2000
const STOP_PATIENCE_MS = 1500

export class Jobs implements Component {
  private table: Table<number, Job> | undefined
  private readonly running = new Map<string, Running>()
  private stopping = false

  constructor(
    private readonly store: Store,
    private readonly bus: Bus,
    private readonly log: Logger,
    private readonly now: () => Date = () => new Date(),
    private readonly history = HISTORY,
  ) {}

  start(): void {
    const table = this.store.table<number, Job>('jobs')
    this.table = table
    const cut = [...table.range()].flatMap(({ key, value }) => {
      const status = nextJobStatus(value.status, 'server-ended')
      return status ? [{ key, value: { ...value, status, ended: this.now().toISOString() } }] : []
    })
    this.store.urgent(() => {
      for (const { key, value } of cut) table.put(key, value)
    })
  }

  /** Tells all to end, and waits a bounded time for them. */
  async stop(): Promise<void> {
    this.stopping = true
    const all = [...this.running.values()]
    for (const { controller } of all) controller.abort(new ApiError('SERVICE_UNAVAILABLE', 'The server is ending'))
    await Promise.race([Promise.allSettled(all.map(({ ended }) => ended)), delay(STOP_PATIENCE_MS, undefined, { ref: false })])
    this.table = undefined
  }

  /** Begins at once. Throws `Conflict` while one of that kind runs. */
  begin<T>(kind: string, work: (context: JobContext) => Promise<T>, options: JobOptions = {}): Job {
    const busy = [...this.running.values()].find(({ job }) => job.kind === kind)
    if (busy) throw new Conflict(`A job of this kind is running`, `job ${busy.job.id}`)
    const job: Job = {
      id: String(this.store.transaction(() => this.store.nextId('jobs'))),
      kind,
      status: 'running',
      progress: 0,
      message: null,
      started: this.now().toISOString(),
      ended: null,
      username: currentActor()?.username ?? null,
      role: options.role ?? 'operator',
      result: null,
      error: null,
    }
    this.remember(job)
    const controller = new AbortController()
    const ended = this.run(job.id, work, controller, options.limitMs ?? DEFAULT_LIMIT_MS)
    this.running.set(job.id, { job, controller, ended, toldAt: 0 })
    this.publish('started', job)
    return job
  }

  /** Newest first, those that `caller` may see. */
  list(caller: Caller, { limit, offset }: { limit: number; offset: number }): { jobs: Job[]; total: number } {
    const all = [...this.required().range({ reverse: true })].map(({ value }) => this.running.get(value.id)?.job ?? value)
    const seen = all.filter((job) => seesJob(caller, job))
    return { jobs: seen.slice(offset, offset + limit), total: seen.length }
  }

  get(id: string, caller: Caller): Job {
    const job = this.running.get(id)?.job ?? this.required().get(Number(id))
    if (!job || !seesJob(caller, job)) throw new NotFound(`job ${id}`)
    return job
  }

  /** Resolves when it has ended, or after two seconds while it still cleans up. */
  async cancel(id: string, caller: Caller): Promise<Job> {
    const { status } = this.get(id, caller)
    const running = this.running.get(id)
    if (!running) throw new Conflict('This job has ended', `job ${id}: ${status}`)
    const next = nextJobStatus(running.job.status, 'cancel')
    if (next) {
      running.job = { ...running.job, status: next }
      running.controller.abort(new ApiError('CONFLICT', 'The job was cancelled'))
      this.publish('cancelling', running.job)
    }
    await Promise.race([running.ended, delay(CANCEL_PATIENCE_MS, undefined, { ref: false })])
    return this.get(id, caller)
  }

  private async run<T>(
    id: string,
    work: (context: JobContext) => Promise<T>,
    controller: AbortController,
    limitMs: number,
  ): Promise<void> {
    const timeUp = new ApiError('SERVICE_UNAVAILABLE', `The job took longer than ${limitMs} ms`, 'time limit')
    const timer = setTimeout(() => controller.abort(timeUp), limitMs)
    const context = { id, signal: controller.signal, progress: this.progressOf(id) }
    try {
      // The caller gets the job before its work can end.
      await Promise.resolve()
      controller.signal.throwIfAborted()
      const result = await work(context)
      this.end(id, 'done', { result: result ?? null, progress: 1 })
    } catch (thrown) {
      // Work that was told to end may fail with anything; the reason for the telling is what counts.
      const cause = controller.signal.aborted ? controller.signal.reason : thrown
      this.end(id, this.stopping ? 'server-ended' : 'error', { error: this.explain(id, cause) })
    } finally {
      clearTimeout(timer)
    }
  }

  private progressOf(id: string): JobContext['progress'] {
    return (fraction, message) => {
      const running = this.running.get(id)
      if (!running) return
      running.job = {
        ...running.job,
        progress: Math.min(1, Math.max(0, fraction)),
        message: message ?? running.job.message,
      }
      const now = performance.now()
      if (running.toldAt > 0 && now - running.toldAt < PROGRESS_EVERY_MS) return
      running.toldAt = now
      this.publish('progress', running.job)
    }
  }

  private end(id: string, trigger: JobTrigger, change: Partial<Job>): void {
    const running = this.running.get(id)
    if (!running) return
    const status = nextJobStatus(running.job.status, trigger) ?? running.job.status
    const job = { ...running.job, ...change, status, ended: this.now().toISOString() }
    this.running.delete(id)
    try {
      this.remember(job)
    } catch (error) {
      // A full disk: the next start will call it interrupted.
      this.log.error({ id, error: errorText(error) }, 'the outcome of a job cannot be written')
    }
    this.log.info({ id, kind: job.kind, status, error: job.error?.message }, 'job ended')
    this.publish(status, job)
  }

  private explain(id: string, thrown: unknown): JobError {
    if (thrown instanceof ApiError) return { code: thrown.code, message: thrown.message, details: thrown.details }
    const incident = randomUUID()
    this.log.error({ id, incident, err: thrown }, 'job failed')
    return { code: 'INTERNAL_ERROR', message: 'The server has failed', details: incident }
  }

  /** Writes the job, and drops the oldest beyond the bound. */
  private remember(job: Job): void {
    // After the end of the server nothing may be written any more.
    const { table } = this
    if (!table) return
    this.store.transaction(() => {
      table.put(Number(job.id), job)
      const surplus = table.count() - this.history
      for (const key of surplus > 0 ? [...table.keys({ limit: surplus })] : []) {
        if (!this.running.has(String(key))) table.remove(key)
      }
    })
  }

  private publish(type: string, { id, kind, status, progress, message, username, role, error }: Job): void {
    this.bus.publish('job', type, { job_id: id, kind, status, progress, message, username, role, error })
  }

  private required(): Table<number, Job> {
    if (!this.table) throw new ApiError('SERVICE_UNAVAILABLE', 'The server is ending')
    return this.table
  }
}

/** Those of the job's role; who is limited to some cameras sees what he started himself. */
export function seesJob(caller: Caller, { role, username }: { role: Role; username: string | null }): boolean {
  if (ROLES.indexOf(caller.role) < ROLES.indexOf(role)) return false
  return caller.cameras == null || caller.username === username
}
