/** The trials of network changes as the system service has them: it takes each back by itself, so that what it says of them counts. */
import { ApiError, errorText } from '../errors.ts'
import type { Logger } from '../log.ts'
import { AgentFailure, type SystemAgent } from '../platform/index.ts'

export const CONFIRM_WITHIN_SECONDS = 60

export class SystemTrials {
  constructor(
    private readonly agent: SystemAgent,
    private readonly log: Logger,
  ) {}

  /** One that is over already is as good. */
  async takeBack(name: string): Promise<void> {
    try {
      await this.agent.ask(['network-revert', name])
    } catch (error) {
      if (!(error instanceof AgentFailure && error.code === 'NO_TRIAL')) throw error
    }
  }

  /** What was done half is taken back now rather than in a minute. */
  async undo(name: string): Promise<void> {
    try {
      await this.takeBack(name)
    } catch (error) {
      this.log.info({ interface: name, error: errorText(error) }, 'nothing was taken back')
    }
  }

  /** Milliseconds until the trial of an interface ends, as the system service says; null where it does not say. */
  async endOf(name: string): Promise<number | null> {
    try {
      return (await this.underWay()).get(name) ?? null
    } catch (error) {
      this.log.warn({ error: errorText(error) }, 'the end of the trial is not known')
      return null
    }
  }

  /** By interface, in milliseconds from now. */
  async underWay(): Promise<Map<string, number>> {
    const lines = await this.agent.ask(['network-trials'])
    return new Map(lines.map(parseTrial))
  }
}

/** What the service refuses, as clients get it. */
export function trialRefusal(error: unknown): unknown {
  if (!(error instanceof AgentFailure)) return error
  return new ApiError(error.code === 'NO_TRIAL' ? 'CONFLICT' : 'SERVICE_UNAVAILABLE', error.message, error.code)
}

function parseTrial(line: string): [string, number] {
  const { interface: name, expires } = JSON.parse(line) as { interface?: unknown; expires?: unknown }
  const ends = Date.parse(String(expires))
  if (typeof name !== 'string' || Number.isNaN(ends)) throw new Error(`no trial: ${line.slice(0, 80)}`)
  // The clock may be put right by the very network that has come up: no trial takes longer than that.
  return [name, Math.min(Math.max(0, ends - Date.now()), CONFIRM_WITHIN_SECONDS * 1000)]
}
