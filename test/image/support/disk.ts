/**
 * Disks that cost nothing: qcow2 files that hold what differs from the disk behind them. QEMU keeps part of such a file's tables in memory until the
 * guest flushes, so that killing it loses what a power cut would: all that was written but not flushed.
 */
import { execFile } from 'node:child_process'
import { renameSync, rmSync, statSync } from 'node:fs'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Bigger than the image, as a real card is: the data partition has to grow. */
export const DISK_BYTES = 4 * 2 ** 30

export async function overlay(behind: string, file: string): Promise<void> {
  const format = behind.endsWith('.qcow2') ? 'qcow2' : 'raw'
  rmSync(file, { force: true })
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', behind, '-F', format, `${file}.new`, String(DISK_BYTES)])
  renameSync(`${file}.new`, file)
}

/** Changes with the content of the file, as far as a build can tell. */
export function stamp(file: string): string {
  const { size, mtimeMs } = statSync(file)
  return `${size} bytes of ${mtimeMs}`
}
