/** The system info object and health. */
import { Type } from '@sinclair/typebox'
import { type Cameras, formatResolution } from '../cameras/index.ts'
import type { DeviceStorage } from '../files/index.ts'
import { type Route, route } from '../http/index.ts'
import type { MediaSupervisor } from '../media/index.ts'
import type { SystemReader } from '../platform/index.ts'
import type { Recorder } from '../recording/index.ts'
import { BUILD, VERSION } from '../version.ts'
import { Enum, Nullable } from './schemas.ts'

const Space = Type.Object({ total: Type.Integer(), available: Type.Integer(), used: Type.Integer() }, { description: 'bytes' })

const SystemInfo = Type.Object({
  version: Type.String(),
  build: Type.String({ description: 'time of the build, ISO 8601' }),
  uptime: Type.Integer({ description: 'seconds since the server started' }),
  system: Type.Object({
    temperature: Nullable(Type.Number({ description: 'degrees Celsius' })),
    cpu_usage: Nullable(Type.Number({ description: 'percent of all cores' })),
    memory: Nullable(Space),
    disk: Nullable(Space),
  }),
  camera: Type.Object({
    connected: Type.Boolean(),
    resolution: Nullable(Type.String()),
    framerate: Nullable(Type.Integer()),
    recording: Type.Boolean(),
  }),
  network: Type.Object({ ip: Nullable(Type.String()), hostname: Type.String(), connected: Type.Boolean() }),
})

const CHECKS = ['ok', 'warning', 'error'] as const
const Health = Type.Object({
  status: Enum(['healthy', 'degraded', 'unhealthy']),
  timestamp: Type.String(),
  checks: Type.Object({ camera: Enum(CHECKS), storage: Enum(CHECKS), network: Enum(CHECKS) }),
})

/** Less than this and recordings can no longer start. */
const LOW_SPACE = 1_000_000_000

export interface SystemParts {
  readonly cameras: Cameras
  readonly recorder: Recorder
  readonly media: MediaSupervisor
  readonly storage: DeviceStorage
  readonly system: SystemReader
}

export function systemRoutes(parts: SystemParts): Route[] {
  const info = (path: string) =>
    route({
      method: 'GET',
      path,
      access: 'guest',
      rate: 'api',
      tag: 'System',
      summary: 'Version, load, camera and network at a glance',
      response: SystemInfo,
      handler: () => systemInfo(parts),
    })
  const health = (path: string) =>
    route({
      method: 'GET',
      path,
      access: 'guest',
      rate: 'api',
      tag: 'System',
      summary: 'Whether camera, storage and network are fine',
      response: Health,
      beforePasswordChange: true,
      handler: () => healthOf(parts),
    })
  return [info('/api/info'), info('/api/status'), health('/health'), health('/api/health')]
}

function systemInfo({ cameras, recorder, storage, system }: SystemParts) {
  const { id, connected, mode } = cameras.view()
  return {
    version: VERSION,
    build: BUILD,
    uptime: Math.floor(process.uptime()),
    system: {
      temperature: system.temperature(),
      cpu_usage: system.cpuUsagePercent(),
      memory: system.memory(),
      disk: storage.recentSpace(),
    },
    camera: {
      connected,
      resolution: mode ? formatResolution(mode) : null,
      framerate: mode?.fps ?? null,
      recording: recorder.isRecording(id),
    },
    network: system.network(),
  }
}

function healthOf({ cameras, media, storage, system }: SystemParts) {
  const wanted = cameras.list().filter(({ settings }) => settings.enabled)
  const delivering = wanted.filter(({ connected }) => connected)
  const space = storage.space()
  const checks = {
    camera:
      media.info === null || (wanted.length > 0 && delivering.length === 0)
        ? 'error'
        : delivering.length < wanted.length
          ? 'warning'
          : 'ok',
    storage: space === null ? 'error' : space.available > LOW_SPACE ? 'ok' : 'warning',
    network: system.network().connected ? 'ok' : 'warning',
  }
  const values = Object.values(checks)
  const status = values.includes('error') ? 'unhealthy' : values.includes('warning') ? 'degraded' : 'healthy'
  return { status, timestamp: new Date().toISOString(), checks }
}
