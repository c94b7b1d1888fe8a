/** The helper's life as the supervisor sees it: a table of transitions, pure. */
import { backoff } from '../backoff.ts'

export type HelperPhase = 'stopped' | 'starting' | 'up' | 'waiting'
export type HelperInput = 'start' | 'connected' | 'lost' | 'retry' | 'stop'

const TRANSITIONS: Record<HelperPhase, Partial<Record<HelperInput, HelperPhase>>> = {
  stopped: { start: 'starting' },
  starting: { connected: 'up', lost: 'waiting', stop: 'stopped' },
  up: { lost: 'waiting', stop: 'stopped' },
  waiting: { retry: 'starting', stop: 'stopped' },
}

/** Undefined: the input means nothing in this phase. */
export function nextPhase(phase: HelperPhase, input: HelperInput): HelperPhase | undefined {
  return TRANSITIONS[phase][input]
}

const FIRST_DELAY_MS = 50
const LAST_DELAY_MS = 5000

/** Waiting time before restart number `failures` (1 is the first) since the helper last ran for a while. */
export function restartDelay(failures: number): number {
  return backoff(failures, FIRST_DELAY_MS, LAST_DELAY_MS)
}
