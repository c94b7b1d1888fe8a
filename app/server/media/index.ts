export * from './protocol.ts'
export { MediaSupervisor, type RtspOptions, type RtspPorts } from './supervisor.ts'
