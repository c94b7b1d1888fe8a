export type { Permission } from './permissions.ts'
export { StateSocket } from './socket.ts'
export { recordingDefaults, State } from './state.ts'
