/** Which of several discs with partitions of the same names the initial RAM disc takes. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { eachShell, type Machine, OVERLAY } from './machine.ts'

const INIT = join(OVERLAY, '../board/common/initrd/init')
/** Folder of each partition below /sys/devices, and what an MMC host says of its medium. */
const STICK = 'pci0/usb1/1-2/host0/block/sda/sda3'
const NVME = 'pci0/nvme/nvme0/nvme0n1/nvme0n1p3'
const SD = 'platform/mmc_host/mmc1/mmc1:1/block/mmcblk1/mmcblk1p3'
const EMMC = 'platform/mmc_host/mmc0/mmc0:1/block/mmcblk0/mmcblk0p3'

function plug(machine: Machine, paths: readonly string[]): void {
  for (const path of paths) {
    const name = path.split('/').at(-1) as string
    machine.write(`/sys/devices/${path}/uevent`, `DEVNAME=${name}\nPARTNAME=rootfs-a\n`)
    mkdirSync(machine.at('/sys/class/block'), { recursive: true })
    symlinkSync(`../../devices/${path}`, machine.at(`/sys/class/block/${name}`))
    const medium = path.includes('mmcblk1') ? 'SD' : path.includes('mmcblk0') ? 'MMC' : undefined
    // <disc>/device leads to the card.
    if (medium) machine.write(`/sys/devices/${path}/../device/type`, `${medium}\n`)
  }
}

/** The device that `find_root` takes for what the loader said, or an empty line. */
function found(machine: Machine, disk: string): string {
  const functions = /^kind\(\) \{.*?^\}.*?^find_root\(\) \{.*?^\}/ms.exec(readFileSync(INIT, 'utf8'))?.[0]
  if (!functions) throw new Error('the functions are gone')
  const script = `${functions.replaceAll('/sys/', `${machine.root}/sys/`)}\nroot=PARTLABEL=rootfs-a disk=${disk}\nfind_root\necho "$device"`
  const [program = '', ...args] = machine.shell === 'dash' ? ['dash'] : ['busybox', 'sh']
  return execFileSync(program, [...args, '-c', script], { encoding: 'utf8' }).trim()
}

eachShell(t, 'the disc that the boot loader read from', (t, machine) => {
  plug(machine, [STICK, NVME, SD, EMMC])
  t.equal(found(machine, 'usb'), '/dev/sda3')
  t.equal(found(machine, 'sd'), '/dev/mmcblk1p3')
  t.equal(found(machine, 'emmc'), '/dev/mmcblk0p3')
})

eachShell(t, 'a kind that is not there yet is waited for', (t, machine) => {
  plug(machine, [SD])
  for (const disk of ['usb', 'emmc']) t.equal(found(machine, disk), '', disk)
  plug(machine, [STICK])
  t.equal(found(machine, 'usb'), '/dev/sda3')
})

eachShell(t, 'where the loader cannot tell, USB comes last; where it names another kind, never', (t, machine) => {
  plug(machine, [STICK])
  t.equal(found(machine, ''), '/dev/sda3')
  t.equal(found(machine, 'virtio'), '')
  t.equal(found(machine, 'mmc'), '')
  plug(machine, [NVME])
  for (const disk of ['', 'nvme']) t.equal(found(machine, disk), '/dev/nvme0n1p3', disk)
})
