import t from 'tap'
import { qemuArgs } from '../../../scripts/image/qemu.ts'

const machine = {
  memoryMb: 1024,
  cpus: 2,
  accel: 'tcg,thread=multi',
  serialLog: '/tmp/serial.log',
  forwards: [],
  watchdog: true,
} as const

/** The values behind each appearance of NAME. */
function valuesOf(args: readonly string[], name: string): string[] {
  return args.flatMap((word, index) => (word === name ? [args[index + 1] ?? ''] : []))
}

t.test('ports are forwarded to loopback only', async (t) => {
  const forwards = [
    { hostPort: 40001, guestPort: 8080 },
    { hostPort: 40002, guestPort: 3702, protocol: 'udp' },
  ] as const
  const [net] = valuesOf(qemuArgs({ ...machine, disk: 'disk.img', forwards }), '-netdev')
  t.equal(net, 'user,id=net,hostfwd=tcp:127.0.0.1:40001-:8080,hostfwd=udp:127.0.0.1:40002-:3702')
})

t.test('the kind of disk follows from its name, commas in names survive', async (t) => {
  const drives = (disk: string) => valuesOf(qemuArgs({ ...machine, disk }), '-drive')
  t.match(drives('/a,b/disk.img')[1], /file=\/a,,b\/disk\.img,format=raw/)
  t.match(drives('/a/overlay.qcow2')[1], /format=qcow2/)
})

t.test('shell, credentials and watchdog only where they are asked for', async (t) => {
  const plain = qemuArgs({ ...machine, disk: 'disk.img', watchdog: false })
  t.same(valuesOf(plain, '-smbios'), [])
  t.notOk(plain.some((word) => /virtconsole|i6300esb/.test(word)))
  const full = qemuArgs({ ...machine, disk: 'disk.img', shell: { socketPath: '/tmp/s,1' }, smbios: ['a=b,c', 'd=e'] })
  t.same(valuesOf(full, '-smbios'), ['type=11,value=a=b,,c', 'type=11,value=d=e'])
  t.ok(full.includes('i6300esb'))
  t.match(valuesOf(full, '-chardev'), [/path=\/tmp\/s,,1,server=on/])
})
