/** A machine for a test: on a disk of its own, ended with the test. What it left is kept where the test failed. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { IMAGE_DIR, probeAccel } from '../../../scripts/image/qemu.ts'
import type { Api } from '../../support/api.ts'
import { answering, confirmed, firstLogin, firstPicture } from './device.ts'
import { DISK_BYTES, overlay, stamp } from './disk.ts'
import { Machine, type MachineOptions } from './vm.ts'

export const DISK_IMAGE = join(IMAGE_DIR, 'disk.img')
const FOLDER = join(import.meta.dirname, '../../../build/image/test')
const PREPARED = join(FOLDER, 'prepared.qcow2')
const STATE = join(FOLDER, 'prepared.state')

/** What `make test-image-full` does. */
export const FULL = process.env.IMAGE_FULL === '1'

const QEMU = '/usr/bin/qemu-system-x86_64'

/** `new`: as flashed; `prepared`: runs for the first time, confirmed, the factory password changed, small pictures. It goes on from there at once. */
export type Start = 'new' | 'prepared'

export async function machineFor(
  t: Test,
  name: string,
  start: Start,
  more: Pick<MachineOptions, 'smbios'> = {},
): Promise<Machine> {
  if (!existsSync(DISK_IMAGE)) throw new Error(`there is no ${DISK_IMAGE}: make image-reference`)
  if (start === 'prepared') await prepared()
  const machine = await (start === 'new' ? made(name, DISK_IMAGE, more) : made(name, PREPARED, { ...more, state: STATE }))
  t.teardown(async () => {
    if (!t.passing()) t.comment(`what the machine left is in ${machine.options.folder}`)
    await done(machine, t.passing())
  })
  return machine
}

async function made(name: string, behind: string, more: Pick<MachineOptions, 'smbios' | 'state'> = {}): Promise<Machine> {
  const folder = join(FOLDER, name)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const disk = join(folder, 'disk.qcow2')
  await overlay(behind, disk)
  return new Machine({ disk, folder, socketPath: join(mkdtempSync(join(tmpdir(), 'camera-vm-')), 'shell.sock'), ...more })
}

async function done(machine: Machine, good: boolean): Promise<void> {
  const { folder, socketPath } = machine.options
  if (!good) await keepJournal(machine, folder)
  await machine.cut()
  rmSync(dirname(socketPath), { recursive: true, force: true })
  if (good) rmSync(folder, { recursive: true, force: true })
}

async function keepJournal(machine: Machine, folder: string): Promise<void> {
  try {
    const { output } = await machine.tryRun(
      'systemctl --failed --no-pager; journalctl --no-pager -o short-monotonic -n 3000',
      30_000,
    )
    writeFileSync(join(folder, 'journal.txt'), output)
  } catch (error) {
    writeFileSync(join(folder, 'journal.txt'), `no journal: ${error}`)
  }
}

export interface FirstBoot {
  readonly apiMs: number
  readonly pictureMs: number
  readonly confirmedMs: number
}

/** The first start, made once for an image and a QEMU: how long it took. Its disk and the state of its machine are kept. */
export async function prepared(): Promise<FirstBoot> {
  const note = `${PREPARED}.json`
  const of = [
    await probeAccel(),
    DISK_BYTES,
    ...[DISK_IMAGE, QEMU, join(import.meta.dirname, '../../../scripts/image/qemu.ts'), import.meta.filename].map(stamp),
  ].join(', ')
  if (existsSync(note)) {
    const known = JSON.parse(readFileSync(note, 'utf8')) as { of: string; took: FirstBoot }
    if (known.of === of) return known.took
  }
  rmSync(note, { force: true })
  const machine = await made('preparing', DISK_IMAGE)
  let good = false
  try {
    await machine.start()
    const took = await firstBoot(machine)
    await machine.suspend(STATE)
    renameSync(machine.options.disk, PREPARED)
    writeFileSync(note, JSON.stringify({ of, took }))
    good = true
    return took
  } finally {
    await done(machine, good)
  }
}

async function firstBoot(machine: Machine): Promise<FirstBoot> {
  const apiMs = await answering(machine)
  const api = await firstLogin(machine)
  const pictureMs = await firstPicture(machine, api)
  await confirmed(machine)
  const took = { apiMs, pictureMs, confirmedMs: machine.uptimeMs }
  await smallPictures(api, 5)
  return took
}

/** Without KVM the virtual camera and the encoder have two slow cores between them: small and few pictures leave time for everything else. */
export async function smallPictures(api: Api, fps: number): Promise<void> {
  const { status, body } = await api.put('/api/camera/settings', { resolution: '320x180', fps })
  if (status !== 200) throw new Error(`the camera's settings cannot be changed: ${status} ${JSON.stringify(body)}`)
}
