/**
 * How the image's virtual machine looks: one command line for `make run-image` and for the tests. The firmware is OVMF, so that GRUB, the slots and
 * the boot counters take part; every port is forwarded to loopback only.
 */
import { spawn } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..', '..')

/** Where the reference image's parts lie after `make image-reference`. */
export const IMAGE_DIR = join(ROOT, 'build', 'image', 'reference-x86_64')

/** Debian's OVMF without secure boot; its variables are not kept: what the firmware remembers plays no part in choosing the slot. */
const FIRMWARE = '/usr/share/OVMF/OVMF_CODE_4M.fd'

const PROBE_LIMIT_MS = 20_000

export type Accelerator = 'kvm' | 'tcg,thread=multi'

export interface Forward {
  hostPort: number
  guestPort: number
  /** TCP unless it says otherwise. */
  protocol?: 'tcp' | 'udp'
}

export interface QemuOptions {
  /** `*.qcow2` is taken as such (an overlay, say), everything else as raw. */
  disk: string
  memoryMb: number
  cpus: number
  accel: Accelerator
  /** The file that gets what the machine prints on its serial line. */
  serialLog: string
  forwards: readonly Forward[]
  /** QEMU listens on this Unix socket; in the machine it is /dev/virtio-ports/shell. No console: systemd would put a login on that. */
  shell?: { socketPath: string }
  /** SMBIOS type 11 strings: systemd takes credentials from them. */
  smbios?: readonly string[]
  /** With the hardware watchdog i6300esb; when it bites the machine resets, and with `-no-reboot` QEMU ends. */
  watchdog: boolean
  extra?: readonly string[]
}

/** QEMU's arguments, without its name. A reset ends the process: starting it anew is far quicker than a warm reset under TCG. */
export function qemuArgs(options: QemuOptions): string[] {
  const format = options.disk.endsWith('.qcow2') ? 'qcow2' : 'raw'
  const forwards = options.forwards.map(
    ({ hostPort, guestPort, protocol = 'tcp' }) => `hostfwd=${protocol}:127.0.0.1:${hostPort}-:${guestPort}`,
  )
  return [
    ...['-machine', 'q35,sata=off,smbus=off', '-accel', options.accel, '-cpu', options.accel === 'kvm' ? 'host' : 'max'],
    ...['-m', String(options.memoryMb), '-smp', String(options.cpus)],
    ...['-nodefaults', '-no-user-config', '-display', 'none', '-monitor', 'none', '-no-reboot'],
    ...['-drive', `if=pflash,format=raw,unit=0,readonly=on,file=${escapeCommas(FIRMWARE)}`],
    ...['-drive', `if=none,id=disk,file=${escapeCommas(options.disk)},format=${format},cache=writeback`],
    ...['-device', 'virtio-blk-pci,drive=disk,bootindex=1'],
    ...['-netdev', ['user', 'id=net', ...forwards].join(','), '-device', 'virtio-net-pci,netdev=net,romfile='],
    ...['-device', 'virtio-rng-pci', '-serial', `file:${options.serialLog}`],
    ...(options.watchdog ? ['-device', 'i6300esb', '-action', 'watchdog=reset'] : []),
    ...(options.shell ? shellArgs(options.shell.socketPath) : []),
    ...(options.smbios ?? []).flatMap((text) => ['-smbios', `type=11,value=${escapeCommas(text)}`]),
    ...(options.extra ?? []),
  ]
}

function shellArgs(socketPath: string): string[] {
  return [
    ...['-chardev', `socket,id=shell,path=${escapeCommas(socketPath)},server=on,wait=off`],
    ...['-device', 'virtio-serial-pci', '-device', 'virtserialport,chardev=shell,name=shell'],
  ]
}

/** A comma inside a value of QEMU's is written twice. */
function escapeCommas(value: string): string {
  return value.replaceAll(',', ',,')
}

let probed: Promise<Accelerator> | undefined

/**
 * KVM where the image's own kernel really comes up on it, else TCG: a /dev/kvm that opens may still not run a stock kernel (nested and paravirtual
 * hosts). CAMERA_QEMU_ACCEL says it without a probe.
 */
export function probeAccel(kernel: string = join(IMAGE_DIR, 'rootfs', 'boot', 'vmlinuz')): Promise<Accelerator> {
  probed ??= probe(kernel).then((works) => (works ? 'kvm' : 'tcg,thread=multi'))
  return probed
}

async function probe(kernel: string): Promise<boolean> {
  const forced = process.env.CAMERA_QEMU_ACCEL
  if (forced) return forced === 'kvm'
  if (!existsSync(kernel) || !mayUse('/dev/kvm')) return false
  // Without a root file system the kernel panics at once and, told so, resets, which ends QEMU.
  const args = [
    '-machine',
    'q35',
    '-accel',
    'kvm',
    '-cpu',
    'host',
    '-m',
    '512',
    '-nodefaults',
    '-no-user-config',
    '-display',
    'none',
  ]
  args.push('-monitor', 'none', '-no-reboot', '-serial', 'stdio', '-kernel', kernel, '-append', 'console=ttyS0 panic=-1')
  return new Promise((resolve) => {
    let printed = ''
    const qemu = spawn('qemu-system-x86_64', args, { stdio: ['ignore', 'pipe', 'ignore'] })
    const limit = setTimeout(() => qemu.kill('SIGKILL'), PROBE_LIMIT_MS)
    qemu.stdout.on('data', (chunk: Buffer) => {
      printed = (printed + chunk.toString('latin1')).slice(-65_536)
    })
    qemu.on('error', () => undefined)
    qemu.on('close', () => {
      clearTimeout(limit)
      resolve(printed.includes('Kernel panic - not syncing'))
    })
  })
}

function mayUse(file: string): boolean {
  try {
    accessSync(file, constants.R_OK | constants.W_OK)
    return true
  } catch {
    return false
  }
}
