export * from './protocol.ts'
export { MediaSupervisor, type RtspOptions } from './supervisor.ts'
