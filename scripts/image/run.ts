/**
 * `make run-image`: boots the reference image in QEMU with the server's ports forwarded to free ports of this machine, prints the serial line, and powers the
 * machine on again when it resets. The disk is a copy that keeps its state between runs; `--fresh` begins anew, `--size 8G` makes it another size.
 */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Forward, IMAGE_DIR, probeAccel, qemuArgs } from './qemu.ts'

const PORTS: readonly [port: number, name: string][] = [
  [80, 'HTTP'],
  [443, 'HTTPS'],
  [554, 'RTSP'],
  [8080, 'HTTP'],
  [8081, 'HTTPS'],
  [8082, 'dashboard'],
]

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = typeof address === 'object' && address ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}

function prepareDisk(disk: string, fresh: boolean, size: string): void {
  const source = join(IMAGE_DIR, 'disk.img')
  if (!existsSync(source)) throw new Error('there is no image: run `make image-reference` first')
  const outdated = existsSync(disk) && statSync(disk).mtimeMs < statSync(source).mtimeMs
  if (outdated) console.log('The image is newer than the disk of the last run: starting from the new one.')
  if (existsSync(disk) && !fresh && !outdated) return
  rmSync(disk, { force: true })
  execFileSync('cp', ['--sparse=always', source, disk])
  execFileSync('truncate', ['--size', size, disk])
}

/** Runs the machine until it is powered off (`false`) or resets (`true`). QEMU's monitor protocol on its standard output says which it was. */
function powerOn(args: readonly string[], serialLog: string): Promise<boolean> {
  rmSync(serialLog, { force: true })
  return new Promise((resolve, reject) => {
    const qemu = spawn('qemu-system-x86_64', [...args, '-qmp', 'stdio'], { stdio: ['pipe', 'pipe', 'inherit'] })
    // The terminal's interrupt reaches QEMU as well, and ends the machine as a cut of the power would.
    const serial = spawn('tail', ['--follow=name', '--retry', '--quiet', '--lines=+1', `--pid=${qemu.pid}`, serialLog], {
      stdio: ['ignore', 'inherit', 'ignore'],
    })
    let said = ''
    qemu.stdin.write('{"execute":"qmp_capabilities"}\n')
    qemu.stdout.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-4096)
    })
    qemu.on('error', reject)
    qemu.on('close', (code) => {
      serial.kill()
      if (code === 0) resolve(/"reason": "guest-reset"|"WATCHDOG"/.test(said))
      else reject(new Error(`QEMU ended with ${code}`))
    })
  })
}

const { values } = parseArgs({
  options: { fresh: { type: 'boolean', default: false }, size: { type: 'string', default: '4G' } },
})
const folder = join(IMAGE_DIR, 'run')
const disk = join(folder, 'disk.img')
const serialLog = join(folder, 'serial.log')
mkdirSync(folder, { recursive: true })
prepareDisk(disk, values.fresh, values.size)

const forwards: Forward[] = []
for (const [guestPort, name] of PORTS) {
  const hostPort = await freePort()
  forwards.push({ hostPort, guestPort })
  console.log(`${name.padEnd(9)} ${guestPort} at 127.0.0.1:${hostPort}`)
}
const accel = await probeAccel()
console.log(`${accel === 'kvm' ? 'KVM' : 'KVM does not run the kernel here: emulation, about ten times slower'}; end with Ctrl-C`)
const args = qemuArgs({ disk, memoryMb: 1024, cpus: 2, accel, serialLog, forwards, watchdog: true })
while (await powerOn(args, serialLog)) console.log('--- the machine has reset')
