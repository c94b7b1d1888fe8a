export { FactoryReset, type ResetOptions } from './factory-reset.ts'
export { Restart } from './restart.ts'
