export { Catalogue, MEDIA_STATES, type MediaState, type RecordingRow } from './catalogue.ts'
export { RECORDING_STATES, type RecordingState } from './machine.ts'
export type { RecordingRequest } from './plan.ts'
export { type EndReason, Recorder, type RecordingStatus } from './recorder.ts'
