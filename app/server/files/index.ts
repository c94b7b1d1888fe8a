export * from './names.ts'
export { DeviceStorage } from './storage.ts'
