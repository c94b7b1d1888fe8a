/** Processes named by number and start time, so that a reused number is never mistaken for the old process. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { StartupError } from '../errors.ts'
import { writeFileAtomic } from './files.ts'

/** `pid starttime`, or null when there is no such process (a zombie counts as gone). */
export function processIdentity(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? null : `${pid} ${fields[19]}`
  } catch {
    return null
  }
}

/** The identity written in `file`, when that process still runs. */
export function runningProcess(file: string): string | null {
  if (!existsSync(file)) return null
  const recorded = readFileSync(file, 'utf8').trim()
  return processIdentity(Number.parseInt(recorded, 10)) === recorded ? recorded : null
}

export function recordProcess(file: string, pid: number | null): void {
  const identity = pid === null ? null : processIdentity(pid)
  if (identity === null) rmSync(file, { force: true })
  else writeFileAtomic(file, `${identity}\n`, 0o600)
}

/** Takes the data folder for this process; two servers on one catalogue would ruin each other's recordings. */
export function lockDataFolder(file: string): void {
  const holder = runningProcess(file)
  if (holder) throw new StartupError(`the data folder is in use by process ${holder.split(' ')[0]}`)
  recordProcess(file, process.pid)
}

/** Waits for a process that an earlier server left behind (it finalises its recordings), then kills it. */
export async function outlive(file: string, patienceMs: number): Promise<void> {
  const deadline = performance.now() + patienceMs
  for (let identity = runningProcess(file); identity; identity = runningProcess(file)) {
    if (performance.now() > deadline) process.kill(Number.parseInt(identity, 10), 'SIGKILL')
    await delay(20)
  }
  rmSync(file, { force: true })
}
