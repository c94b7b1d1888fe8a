/** The route table. One file a resource; what they need comes in here. */
import type { AuditLog } from '../audit/index.ts'
import type { Auth } from '../auth/index.ts'
import type { Backups } from '../backup/index.ts'
import type { Configuration } from '../config/index.ts'
import type { Files } from '../files/index.ts'
import type { Route } from '../http/index.ts'
import type { Jobs } from '../jobs/index.ts'
import type {
  Exports,
  RecordingSchedule,
  Search,
  StorageCare,
  Tags,
  Thumbnails,
  TriggeredRecordings,
} from '../recording/index.ts'
import type { FactoryReset } from '../reset/index.ts'
import type { Snapshots } from '../snapshots/index.ts'
import type { State } from '../state/index.ts'
import type { Certificates } from '../tls/index.ts'
import type { Updates, UpdatesConfiguration } from '../updates/index.ts'
import { auditRoutes } from './audit.ts'
import { authRoutes } from './auth.ts'
import { backupRoutes } from './backup.ts'
import { cameraRoutes } from './camera.ts'
import { certificateRoutes } from './certificate.ts'
import { configRoutes } from './config.ts'
import { factoryResetRoutes } from './factory-reset.ts'
import { filesRoutes } from './files.ts'
import { jobRoutes } from './jobs.ts'
import { type NetworkParts, networkRoutes } from './network.ts'
import { recordingRoutes } from './recording.ts'
import { recordingMediaRoutes } from './recording-media.ts'
import { recordingPlansRoutes } from './recording-plans.ts'
import { recordingsRoutes } from './recordings.ts'
import { settingsRoutes } from './settings.ts'
import { shareRoutes } from './shares.ts'
import { storageRoutes } from './storage.ts'
import { streamsRoutes } from './streams.ts'
import { type SystemParts, systemRoutes } from './system.ts'
import { tagCategoryRoutes } from './tag-categories.ts'
import { tagRoutes } from './tags.ts'
import { updatesRoutes } from './updates.ts'
import { userRoutes } from './users.ts'

export interface ApiParts extends SystemParts, NetworkParts {
  readonly auth: Auth
  readonly snapshots: Snapshots
  readonly certificates: Certificates
  readonly audit: AuditLog
  readonly jobs: Jobs
  readonly triggers: TriggeredRecordings
  readonly schedule: RecordingSchedule
  readonly files: Files
  readonly search: Search
  readonly thumbnails: Thumbnails
  readonly exports: Exports
  readonly tags: Tags
  readonly configuration: Configuration
  readonly state: State
  readonly backups: Backups
  readonly care: StorageCare
  readonly updates: Updates
  readonly updatesConfiguration: UpdatesConfiguration
  readonly factoryReset: FactoryReset
}

export function apiRoutes(parts: ApiParts): Route[] {
  const { auth, cameras, media, recorder, snapshots } = parts
  return [
    ...authRoutes(auth),
    ...userRoutes(auth),
    ...shareRoutes(auth, cameras, recorder),
    ...systemRoutes(parts),
    ...auditRoutes(parts.audit, parts.jobs),
    ...jobRoutes(parts.jobs),
    ...certificateRoutes(parts.certificates),
    ...networkRoutes(parts),
    ...configRoutes(parts.configuration),
    ...settingsRoutes(parts.state),
    ...backupRoutes(parts.backups, cameras),
    ...cameraRoutes(cameras, recorder, snapshots),
    ...recordingRoutes(recorder, cameras),
    ...recordingPlansRoutes(parts.triggers, parts.schedule),
    ...recordingsRoutes(recorder, parts.search),
    ...recordingMediaRoutes(recorder, parts.thumbnails, parts.exports, parts.jobs),
    ...tagRoutes(recorder, cameras, parts.tags),
    ...tagCategoryRoutes(parts.tags),
    ...filesRoutes(parts.files),
    ...storageRoutes(parts.care, parts.jobs),
    ...streamsRoutes(cameras, media),
    ...updatesRoutes(parts.updates, parts.updatesConfiguration),
    ...factoryResetRoutes(parts.factoryReset, parts.updates),
  ]
}
