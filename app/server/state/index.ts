export type { Permission } from './permissions.ts'
export { recordingDefaults } from './recording-settings.ts'
export { StateSocket } from './socket.ts'
export { type KeyUser, State, stateKeys } from './state.ts'
