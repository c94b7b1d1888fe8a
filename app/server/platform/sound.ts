/** Sound cards, as the kernel lists them in /sys below `root`. */
import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/**
 * The ALSA device that hangs on the same USB device as this video node (a webcam's microphone), by the card's name, which survives another
 * order of plugging in; null where there is none.
 */
export function soundOf(videoDevice: string, root = '/'): string | null {
  const video = resolved(join(root, videoDevice))
  const usb = video && usbDeviceOf(join(root, 'sys/class/video4linux', basename(video)))
  if (!usb) return null
  const sound = join(root, 'sys/class/sound')
  for (const card of entries(sound).filter((name) => /^card\d+$/.test(name))) {
    if (usbDeviceOf(join(sound, card)) !== usb) continue
    const device = firstCapture(sound, card.slice('card'.length))
    const id = read(join(sound, card, 'id'))
    if (device !== null && id) return `hw:CARD=${id},DEV=${device}`
  }
  return null
}

/** Both are interfaces of one USB device, which is the folder around them and has a vendor. */
function usbDeviceOf(entry: string): string | null {
  const usbInterface = resolved(join(entry, 'device'))
  const device = usbInterface && dirname(usbInterface)
  return device && read(join(device, 'idVendor')) !== null ? device : null
}

function firstCapture(sound: string, card: string): number | null {
  const numbers = entries(sound).map((name) => new RegExp(`^pcmC${card}D(\\d+)c$`).exec(name)?.[1])
  const found = numbers.filter((number) => number !== undefined).map(Number)
  return found.length > 0 ? Math.min(...found) : null
}

function entries(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}

function resolved(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return null
  }
}
