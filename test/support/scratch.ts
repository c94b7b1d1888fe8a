/** Folders that go with the test that made them. Tear-downs run last first: what is started after may still use them while it ends. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync } from 'node:fs'
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
