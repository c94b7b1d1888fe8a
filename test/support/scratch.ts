/** Folders that go with the test that made them. Tear-downs run last first: what is started after may still use them while it ends. */
import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A test, or whatever else ends what was begun for it. */
export type Scope = { teardown(action: () => unknown): void }

/** An empty folder; `name` begins its own. */
export function scratchFolder(t: Scope, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A small disk of its own, in memory; `size` as mount takes it: `64m`. */
export function memoryDisk(t: Scope, size: string): string {
  const disk = mkdtempSync(join(tmpdir(), 'disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', disk])
  t.teardown(() => {
    execFileSync('umount', [disk])
    rmdirSync(disk)
  })
  return disk
}

/** The same with the file system that the device has; `bytes` is the size of the disk. */
export function ext4Disk(t: Scope, bytes: number): string {
  const folder = scratchFolder(t, 'ext4')
  const [image, disk] = [join(folder, 'image'), mkdtempSync(join(folder, 'disk-'))]
  writeFileSync(image, '')
  truncateSync(image, bytes)
  execFileSync('/usr/sbin/mkfs.ext4', ['-q', '-F', image])
  execFileSync('mount', ['-o', 'loop', image, disk])
  t.teardown(() => execFileSync('umount', [disk]))
  return disk
}

/** Somebody else takes all that is left on a disk, to the last byte. */
export function fillDisk(disk: string): void {
  const fd = openSync(join(disk, 'hog'), 'a')
  try {
    for (let size = 1024 * 1024; size >= 1; ) {
      try {
        writeSync(fd, Buffer.alloc(size))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
        size = Math.floor(size / 2)
      }
    }
  } finally {
    closeSync(fd)
  }
}

export function freeDisk(disk: string): void {
  rmSync(join(disk, 'hog'))
}
