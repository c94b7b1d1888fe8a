/** What the kernel says of this machine, read from /proc and /sys below `root`; what is not there is null. */
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { Recent } from './recent.ts'

export interface DiskSpace {
  /** Bytes. `available` is what an unprivileged process may still write. */
  readonly total: number
  readonly available: number
  readonly used: number
}

export interface Memory {
  /** Bytes. */
  readonly total: number
  readonly available: number
  readonly used: number
}

export interface NetworkIdentity {
  readonly ip: string | null
  readonly hostname: string
  readonly connected: boolean
}

export function diskSpace(path: string): DiskSpace {
  const { blocks, bavail, bfree, bsize } = statfsSync(path)
  return { total: blocks * bsize, available: bavail * bsize, used: (blocks - bfree) * bsize }
}

export class SystemReader {
  private lastCpu: { busy: number; total: number } | undefined
  private lastUsage: number | null = null
  private sampledAt = Number.NEGATIVE_INFINITY
  private readonly recentMemory: Recent<Memory | null>
  private readonly recentTemperature: Recent<number | null>
  private readonly recentNetwork: Recent<NetworkIdentity>

  constructor(
    private readonly root = '/',
    private readonly now: () => number = () => performance.now(),
  ) {
    // So that the first real question has something to compare with.
    this.cpuUsagePercent()
    this.recentMemory = new Recent(() => this.readMemory(), now)
    this.recentTemperature = new Recent(() => this.readTemperature(), now)
    this.recentNetwork = new Recent(readNetwork, now)
  }

  /** As of the last second, like the two below. */
  memory(): Memory | null {
    return this.recentMemory.get()
  }

  /** The hottest thermal zone in degrees Celsius. */
  temperature(): number | null {
    return this.recentTemperature.get()
  }

  network(): NetworkIdentity {
    return this.recentNetwork.get()
  }

  /** Percent of all cores since the last reading, renewed at most once a second; null where the kernel does not tell. */
  cpuUsagePercent(): number | null {
    if (this.now() - this.sampledAt < 1000) return this.lastUsage
    const line = this.read('proc/stat')?.split('\n')[0]
    const ticks = line?.split(/\s+/).slice(1, 9).map(Number)
    if (!ticks || ticks.length < 8) return null
    const total = ticks.reduce((sum, n) => sum + n, 0)
    const busy = total - (ticks[3] ?? 0) - (ticks[4] ?? 0)
    if (this.lastCpu && total > this.lastCpu.total) {
      this.lastUsage = Math.round(((busy - this.lastCpu.busy) / (total - this.lastCpu.total)) * 1000) / 10
    }
    this.lastCpu = { busy, total }
    this.sampledAt = this.now()
    return this.lastUsage
  }

  private readMemory(): Memory | null {
    const text = this.read('proc/meminfo')
    const bytes = (key: string) => Number(new RegExp(`^${key}: +(\\d+) kB`, 'm').exec(text ?? '')?.[1]) * 1024
    const total = bytes('MemTotal')
    const available = bytes('MemAvailable')
    return Number.isFinite(total) && Number.isFinite(available) ? { total, available, used: total - available } : null
  }

  private readTemperature(): number | null {
    const folder = join(this.root, 'sys/class/thermal')
    if (!existsSync(folder)) return null
    const zones = readdirSync(folder).filter((name) => name.startsWith('thermal_zone'))
    const degrees = zones.map((zone) => Number.parseInt(this.read(`sys/class/thermal/${zone}/temp`) ?? '', 10) / 1000)
    const real = degrees.filter((value) => Number.isFinite(value))
    return real.length > 0 ? Math.max(...real) : null
  }

  private read(path: string): string | undefined {
    try {
      return readFileSync(join(this.root, path), 'utf8')
    } catch {
      return undefined
    }
  }
}

function readNetwork(): NetworkIdentity {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  const outside = addresses.filter((entry) => !entry.internal)
  const chosen = outside.find((entry) => entry.family === 'IPv4') ?? outside[0]
  return { ip: chosen?.address ?? null, hostname: hostname(), connected: chosen !== undefined }
}
