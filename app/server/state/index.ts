export type { Permission } from './permissions.ts'
export { StateSocket } from './socket.ts'
export { State } from './state.ts'
