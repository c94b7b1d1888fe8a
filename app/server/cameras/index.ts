export {
  AUDIO_CODECS,
  type CameraAudio,
  type CameraSettings,
  Cameras,
  type CameraView,
  helperToApi,
  type Still,
} from './cameras.ts'
export { bitrateFor, QUALITIES, type Quality, streamsFor } from './quality.ts'
export { type AudioWish, type CameraSpec, formatResolution, parseCameraSpec, parseResolution, type Size } from './spec.ts'
export { CameraTransfer } from './transfer.ts'
