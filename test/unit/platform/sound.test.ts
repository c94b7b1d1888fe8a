import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { soundOf } from '../../../app/server/platform/index.ts'
import { scratchFolder } from '../../support/scratch.ts'

/** A tree like /sys and /dev: USB devices with interfaces, and class folders that point at those. */
class FakeSys {
  constructor(readonly root: string) {}

  folder(path: string): string {
    mkdirSync(join(this.root, path), { recursive: true })
    return join(this.root, path)
  }

  usbInterface(device: string, name: string): string {
    const at = this.folder(`sys/devices/pci0000:00/usb1/${device}`)
    writeFileSync(join(at, 'idVendor'), '046d\n')
    return this.folder(`sys/devices/pci0000:00/usb1/${device}/${name}`)
  }

  video(node: string, at: string): void {
    this.folder('dev')
    writeFileSync(join(this.root, 'dev', node), '')
    symlinkSync(at, join(this.folder(`sys/class/video4linux/${node}`), 'device'))
  }

  card(number: number, id: string, at: string, pcms: readonly string[]): void {
    const card = this.folder(`sys/class/sound/card${number}`)
    symlinkSync(at, join(card, 'device'))
    writeFileSync(join(card, 'id'), `${id}\n`)
    for (const pcm of pcms) this.folder(`sys/class/sound/pcmC${number}${pcm}`)
  }
}

function fakeSys(t: Test): FakeSys {
  const root = scratchFolder(t, 'sys')
  return new FakeSys(root)
}

t.test('the microphone of the webcam itself, among other cards', async (t) => {
  const sys = fakeSys(t)
  sys.video('video0', sys.usbInterface('1-1', '1-1:1.0'))
  sys.video('video2', sys.usbInterface('1-2', '1-2:1.0'))
  sys.card(0, 'PCH', sys.folder('sys/devices/pci0000:00/0000:00:1f.3'), ['D0c', 'D0p'])
  sys.card(1, 'Webcam', sys.usbInterface('1-1', '1-1:1.2'), ['D2c', 'D1c', 'D0p'])
  sys.card(10, 'Other', sys.usbInterface('1-3', '1-3:1.0'), ['D0c'])
  t.equal(soundOf('/dev/video0', sys.root), 'hw:CARD=Webcam,DEV=1')
  t.equal(soundOf('/dev/video2', sys.root), null, 'this one has no microphone')
  t.equal(soundOf('/dev/video9', sys.root), null, 'this one is not there')
})

t.test('a link to the node is followed', async (t) => {
  const sys = fakeSys(t)
  sys.video('video4', sys.usbInterface('1-1', '1-1:1.0'))
  sys.card(2, 'C920', sys.usbInterface('1-1', '1-1:1.2'), ['D0c'])
  symlinkSync('../../video4', join(sys.folder('dev/v4l/by-id'), 'usb-046d-video-index0'))
  t.equal(soundOf('/dev/v4l/by-id/usb-046d-video-index0', sys.root), 'hw:CARD=C920,DEV=0')
})

t.test('a card that only plays, and a camera that is no USB device, have none', async (t) => {
  const sys = fakeSys(t)
  sys.video('video0', sys.usbInterface('1-1', '1-1:1.0'))
  sys.card(0, 'Speaker', sys.usbInterface('1-1', '1-1:1.2'), ['D0p'])
  const soc = sys.folder('sys/devices/platform/soc/csi')
  sys.video('video1', soc)
  sys.card(1, 'Codec', sys.folder('sys/devices/platform/soc/audio'), ['D0c'])
  t.equal(soundOf('/dev/video0', sys.root), null)
  t.equal(soundOf('/dev/video1', sys.root), null)
  t.equal(soundOf('/dev/video0', join(sys.root, 'nothing')), null, 'no /sys at all')
})
