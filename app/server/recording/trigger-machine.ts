/** When something that was noticed (motion, an alert) starts and ends a recording. One machine a camera. Pure; times in milliseconds. */

export const TRIGGER_SOURCES = ['motion', 'alert'] as const
export type TriggerSource = (typeof TRIGGER_SOURCES)[number]

export interface TriggerTimes {
  readonly postRollMs: number
  /** A recording ends after that, and another one goes on while the trigger lasts. */
  readonly maxMs: number
}

export type TriggerState =
  | { readonly phase: 'idle' }
  | {
      readonly phase: 'recording'
      /** What began it. */
      readonly by: TriggerSource
      readonly since: number
      /** What lasts still. */
      readonly holding: readonly TriggerSource[]
      /** Ends then, when nothing lasts. */
      readonly until: number
    }

export type TriggerInput =
  | { readonly type: 'begin' | 'end'; readonly source: TriggerSource }
  /** What was lost has been taken up again; what began it may have ended meanwhile. */
  | { readonly type: 'resumed'; readonly source: TriggerSource }
  | { readonly type: 'tick' }
  /** The recording has ended otherwise: somebody stopped it, or it could not be started. */
  | { readonly type: 'lost' }

export type TriggerAction = 'start' | 'stop'

export interface TriggerStep {
  readonly state: TriggerState
  readonly actions: readonly TriggerAction[]
}

type Times = Readonly<Record<TriggerSource, TriggerTimes>>

export const IDLE: TriggerState = { phase: 'idle' }

export function stepTrigger(state: TriggerState, input: TriggerInput, now: number, times: Times): TriggerStep {
  if (input.type === 'resumed') {
    const { source: by } = input
    return { state: { phase: 'recording', by, since: now, holding: [], until: now + times[by].postRollMs }, actions: [] }
  }
  if (state.phase === 'idle') {
    if (input.type !== 'begin') return { state, actions: [] }
    const { source } = input
    return { state: { phase: 'recording', by: source, since: now, holding: [source], until: now }, actions: ['start'] }
  }
  switch (input.type) {
    case 'lost':
      return { state: IDLE, actions: [] }
    case 'begin': {
      if (state.holding.includes(input.source)) return { state, actions: [] }
      return { state: { ...state, holding: [...state.holding, input.source] }, actions: [] }
    }
    case 'end': {
      if (!state.holding.includes(input.source)) return { state, actions: [] }
      const holding = state.holding.filter((source) => source !== input.source)
      return { state: { ...state, holding, until: Math.max(state.until, now + times[input.source].postRollMs) }, actions: [] }
    }
    case 'tick': {
      if (now < nextTick(state, times)) return { state, actions: [] }
      const [lasting] = state.holding
      if (lasting === undefined) return { state: IDLE, actions: ['stop'] }
      return { state: { ...state, by: lasting, since: now, until: now }, actions: ['stop', 'start'] }
    }
  }
}

/** When a tick has something to do; infinite: never. */
export function nextTick(state: TriggerState, times: Times): number {
  if (state.phase === 'idle') return Number.POSITIVE_INFINITY
  const limit = state.since + times[state.by].maxMs
  return state.holding.length > 0 ? limit : Math.min(limit, state.until)
}
