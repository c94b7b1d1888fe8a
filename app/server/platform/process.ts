/** Processes named by number and start time, so that a reused number is never mistaken for the old process. */
import { closeSync, constants, existsSync, openSync, readFileSync, writeSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { StartupError } from '../errors.ts'

/** More than two numbers of 64 bits. */
const LINE_LENGTH = 47

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

/** In place, and never shorter: a file that is there once can be written on a disk that is full. Null: there is none any more. */
export function recordProcess(file: string, pid: number | null): void {
  const identity = (pid === null ? null : processIdentity(pid)) ?? ''
  const fd = openSync(file, constants.O_WRONLY | constants.O_CREAT, 0o600)
  try {
    writeSync(fd, `${identity.padEnd(LINE_LENGTH)}\n`, 0)
  } finally {
    closeSync(fd)
  }
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
}
