export { DEFAULT_QUALITY, type SnapshotRequest, type SnapshotResult, Snapshots } from './snapshots.ts'
