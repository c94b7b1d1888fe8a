export * from './protocol.ts'
export { MediaSupervisor, type RtspOptions, type RtspPorts, type RtspSettings } from './supervisor.ts'
