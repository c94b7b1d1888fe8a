export { type Permission, ROLE_PERMISSIONS } from './permissions.ts'
export { StateSocket } from './socket.ts'
export { State } from './state.ts'
