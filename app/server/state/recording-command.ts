/** What a batch of state keys asks of the recorder. Pure. */
import type { RecordingState } from '../recording/index.ts'

export type RecordingCommand = 'start' | 'stop' | 'pause' | 'resume'

/** Undefined: nothing, or what is the case already. Starting what runs is asked for and refused. */
export function recordingCommand(batch: Readonly<Record<string, unknown>>, state: RecordingState): RecordingCommand | undefined {
  if ('record' in batch) {
    const on = batch.record === true || batch.record === 'true' || batch.record === 'on'
    return on ? 'start' : state === 'stopped' ? undefined : 'stop'
  }
  switch (batch.recordingState) {
    case 'recording':
      return state === 'paused' ? 'resume' : 'start'
    case 'paused':
      return state === 'paused' ? undefined : 'pause'
    case 'stopped':
      return state === 'stopped' ? undefined : 'stop'
    default:
      return undefined
  }
}
