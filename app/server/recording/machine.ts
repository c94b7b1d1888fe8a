/** The recording states of the specification, as a table. Pure. */

export const RECORDING_STATES = ['stopped', 'recording', 'paused'] as const
export type RecordingState = (typeof RECORDING_STATES)[number]
export type RecordingTrigger = 'start' | 'stop' | 'ended'

const TRANSITIONS: Record<RecordingState, Partial<Record<RecordingTrigger, RecordingState>>> = {
  stopped: { start: 'recording' },
  // `ended`: the duration is reached, the disk is full, or the helper is gone.
  recording: { stop: 'stopped', ended: 'stopped' },
  paused: { ended: 'stopped' },
}

/** Undefined: the trigger is refused in this state. */
export function nextRecordingState(state: RecordingState, trigger: RecordingTrigger): RecordingState | undefined {
  return TRANSITIONS[state][trigger]
}
