/** The life of a change on trial, as a table. */

/** `announced`: the answer is on its way to the client; `keeping` and `ending`: the system service has been asked. */
export type TrialPhase = 'announced' | 'applying' | 'trial' | 'keeping' | 'ending'
export type TrialEvent = 'apply' | 'done' | 'failed' | 'confirm' | 'end'

/** `over`: nothing is on trial any more. */
const NEXT: Readonly<Record<TrialPhase, Partial<Record<TrialEvent, TrialPhase | 'over'>>>> = {
  announced: { apply: 'applying', end: 'over' },
  applying: { done: 'trial', failed: 'over' },
  trial: { confirm: 'keeping', end: 'ending' },
  keeping: { done: 'over', failed: 'trial' },
  ending: { done: 'over', failed: 'trial' },
}

/** Null: this cannot happen now. */
export function nextPhase(phase: TrialPhase, event: TrialEvent): TrialPhase | 'over' | null {
  return NEXT[phase][event] ?? null
}
