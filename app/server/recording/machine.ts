/** The recording states of the specification, as a table. Pure. */

export const RECORDING_STATES = ['stopped', 'recording', 'paused'] as const
export type RecordingState = (typeof RECORDING_STATES)[number]

/** `ended`: without the user, by its duration, a full disk, a dead helper, or the end of the server. */
export const RECORDING_TRIGGERS = ['start', 'stop', 'pause', 'resume', 'ended'] as const
export type RecordingTrigger = (typeof RECORDING_TRIGGERS)[number]

/** The specification refuses `stop` while paused: such a recording is resumed first. */
const TRANSITIONS: Record<RecordingState, Partial<Record<RecordingTrigger, RecordingState>>> = {
  stopped: { start: 'recording' },
  recording: { stop: 'stopped', pause: 'paused', ended: 'stopped' },
  paused: { resume: 'recording', ended: 'stopped' },
}

/** Undefined: the trigger is refused in this state. */
export function nextRecordingState(state: RecordingState, trigger: RecordingTrigger): RecordingState | undefined {
  return TRANSITIONS[state][trigger]
}
