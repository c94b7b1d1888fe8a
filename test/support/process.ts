/** What a process holds and has used, read from /proc. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestServer } from './server.ts'

const TICKS_PER_SECOND = 100

export interface Usage {
  readonly descriptors: number
  readonly threads: number
  readonly rssMb: number
  /** Seconds of CPU, user and system. */
  readonly cpuSeconds: number
}

export function usage(pid: number): Usage {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const value = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1])
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return {
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    threads: value('Threads'),
    rssMb: value('VmRSS') / 1024,
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND,
  }
}

export function helperPid(server: TestServer): number {
  return Number.parseInt(readFileSync(join(server.dataDir, 'helper.pid'), 'utf8'), 10)
}
