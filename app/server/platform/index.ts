export * from './files.ts'
export * from './keys.ts'
export * from './process.ts'
export * from './system.ts'
