/** The image starts and does what it is for: no unit has failed, the camera's pictures go out every way, and only the named ports are open. */
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { IMAGE_DIR } from '../../scripts/image/qemu.ts'
import { type Api, type Json, until } from '../support/api.ts'
import { firstPicture, isJpeg, loggedIn, probed, streamed } from './support/device.ts'
import { figure, seconds, within } from './support/figures.ts'
import { recorded } from './support/recordings.ts'
import { machineFor, prepared } from './support/scenario.ts'
import type { Machine, PortName } from './support/vm.ts'

const CAMERA_LIMIT_MS = 60_000
const SILENCE_MS = 3000
const MB = 1_000_000

t.test('from the first start on', { timeout: 1_200_000 }, async (t) => {
  const { apiMs, pictureMs, confirmedMs } = await prepared()
  figure(t, 'first start', `API ${seconds(apiMs)}, picture ${seconds(pictureMs)}, slot confirmed ${seconds(confirmedMs)}`)
  const machine = await machineFor(t, 'boot', 'prepared')
  await machine.start()
  const api = await loggedIn(machine)

  await t.test('the system', (t) => system(t, machine))
  await t.test('figures', (t) => figures(t, machine))
  await t.test('who may do what', (t) => sandbox(t, machine))
  await t.test('the network', (t) => network(t, machine, api))
  await t.test('the camera', (t) => camera(t, machine, api))
  await t.test('the camera is unplugged', (t) => unplugged(t, machine, api))
  await t.test('nothing has failed in all that', async (t) => {
    t.equal(await machine.run('systemctl --failed --plain --no-legend'), '')
  })
})

async function system(t: Test, machine: Machine): Promise<void> {
  const { output } = await machine.tryRun('systemctl is-system-running --wait', 120_000)
  t.equal(output, 'running', await machine.run('systemctl --failed --plain --no-legend'))

  const mounts = await machine.run(
    'findmnt -rno TARGET,FSTYPE,OPTIONS / ; findmnt -rno TARGET,FSTYPE,OPTIONS /var; findmnt -rno TARGET,FSTYPE,OPTIONS /data',
  )
  t.match(mounts, /^\/ squashfs ro/m, 'the root file system cannot be written')
  t.match(mounts, /^\/var tmpfs/m)
  t.match(mounts, /^\/data ext4 rw/m)
  t.notMatch(await machine.tryRun('touch /usr/x /etc/x'), { status: 0 })
  t.ok(
    Number(await machine.run('df --output=size -B1000000 /data | tail -n 1')) > 3000,
    'the data partition has grown over the disk',
  )

  t.match(await machine.run('cat /etc/machine-id'), /^[0-9a-f]{32}$/)

  t.equal(await machine.run('systemctl show -P RuntimeWatchdogUSec'), '30s', 'systemd feeds the watchdog')
  t.equal(await machine.run('cat /sys/class/watchdog/watchdog0/state'), 'active')
  t.match(await machine.run('cat /sys/class/watchdog/watchdog0/identity'), /i6300ESB/i)
}

async function figures(t: Test, machine: Machine): Promise<void> {
  const sizes = JSON.parse(readFileSync(join(IMAGE_DIR, 'sizes.json'), 'utf8')) as Record<string, number>
  within(t, 'root file system, compressed', (sizes.squashfs ?? Number.POSITIVE_INFINITY) / MB, 160, 'MB')
  figure(
    t,
    'update bundle, disk as flashed',
    `${((sizes.bundle ?? 0) / MB).toFixed(1)} MB, ${((sizes.disk_in_use ?? 0) / MB).toFixed(1)} MB`,
  )
  const kb = (name: string) => machine.run(`sed -n 's/^${name}: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo`).then(Number)
  within(t, 'memory used after the start', ((await kb('MemTotal')) - (await kb('MemAvailable'))) * 1.024e-3, 350, 'MB')
  const exposure = /exposure level for camera-server.service: ([0-9.]+)/.exec(
    await machine.run('systemd-analyze security --no-pager camera-server.service'),
  )
  within(t, 'exposure of camera-server.service', Number(exposure?.[1]), 2.9, 'of 10')
  figure(
    t,
    'systemd-analyze',
    (await machine.run('systemd-analyze time --no-pager | head -n 1')).replace('Startup finished in ', ''),
  )
}

async function sandbox(t: Test, machine: Machine): Promise<void> {
  // The server also starts programs that end again at any moment.
  const told = await machine.run('for pid in $(pgrep -u camera); do cat /proc/$pid/status 2>/dev/null && echo; done; true')
  const processes = told.split(/\n\n/).filter((status) => status !== '')
  const names = processes.map((status) => /^Name:\t(.*)$/m.exec(status)?.[1])
  // Node calls its first thread MainThread, and with it the process.
  t.ok(
    ['MainThread', 'camera-media'].every((name) => names.includes(name)),
    `as their own user: ${names.join(', ')}`,
  )
  for (const [at, status] of processes.entries()) {
    t.match(status, /^CapEff:\t0000000000000400$/m, `${names[at]} may bind low ports, and nothing else`)
    t.match(status, /^NoNewPrivs:\t1$/m)
  }
  t.equal(
    await machine.run('stat -c %U:%G:%a /run/camera-system.sock /data/camera | tr "\\n" " "'),
    'root:camera:660 camera:camera:700 ',
  )
}

/** What comes back on a connection within a while; empty where nothing does. */
function heard(machine: Machine, port: PortName, ask = ''): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(machine.port(port), '127.0.0.1').setEncoding('latin1').setTimeout(SILENCE_MS)
    const end = () => {
      socket.destroy()
      resolve(text)
    }
    socket.on('connect', () => socket.write(ask))
    socket.on('data', (part: string) => {
      text += part
    })
    socket.on('timeout', end).on('error', end).on('end', end)
  })
}

async function network(t: Test, machine: Machine, api: Api): Promise<void> {
  for (const port of ['http', 'http80', 'dashboard'] as const) {
    t.match(
      await heard(machine, port, 'GET / HTTP/1.1\r\nHost: camera\r\nConnection: close\r\n\r\n'),
      /^HTTP\/1\.1 /,
      `${port} answers`,
    )
  }
  t.match(await heard(machine, 'rtsp', 'OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n'), /^RTSP\/1\.0 /)

  const name = await machine.run('hostname')
  // Something listens, and is heard from within; from outside only when the firewall is told so.
  await machine.run('systemd-run --quiet --unit=test-listener busybox nc -ll -p 9999 -e /usr/bin/hostname')
  await machine.wait('the listener', 10_000, async () =>
    (await machine.run('busybox nc 127.0.0.1 9999 </dev/null')) === name ? true : undefined,
  )
  t.equal(await heard(machine, 'closed'), '', 'a port that is not named is closed')
  await machine.run("nft add element inet camera optional_tcp '{ 9999 }'")
  t.match(await heard(machine, 'closed'), name, 'and that was the firewall')
  await machine.run("nft delete element inet camera optional_tcp '{ 9999 }'; systemctl stop test-listener")
  t.equal(await heard(machine, 'ssh'), '', 'SSH is off')
  t.equal(await machine.run('ss -Htln "sport = :22"'), '')

  t.match(name, /^camera-[0-9a-z]+$/)
  t.equal(String((await api.get('/api/info')).body.network?.hostname), name)
  t.match(await machine.run(`resolvectl query --protocol=mdns ${name}.local`), /10\.0\.2\.15/, 'the name is known by mDNS')
}

async function camera(t: Test, machine: Machine, api: Api): Promise<void> {
  const status = (await api.get('/api/camera/status')).body
  t.match(status, { streaming: true, cameras: [{ connected: true, state: 'streaming', device: /\/dev\/video0/ }] })
  const still = await api.bytes('/image?quality=80')
  t.equal(still.status, 200)
  t.ok(isJpeg(still.bytes), `a JPEG of ${still.bytes.length} bytes`)
  for (const path of ['/stream1', '/stream2']) {
    const pictures = await streamed(machine, path, 3)
    t.ok(pictures >= 10, `${path}: ${pictures} pictures in 3 s`)
  }
  await plays(t, api)
}

async function plays(t: Test, api: Api): Promise<void> {
  const { found } = await recorded(api, 5)
  t.match(found.streams, [{ codec_type: 'video', codec_name: 'h264' }])
  t.ok(found.seconds > 4 && found.seconds < 7, `a recording of 5 s plays ${found.seconds} s`)
  t.ok(Number(found.streams[0]?.nb_read_packets) > 20, `it has ${found.streams[0]?.nb_read_packets} pictures`)
}

async function unplugged(t: Test, machine: Machine, api: Api): Promise<void> {
  const first = async () => ((await api.get('/api/camera/status')).body.cameras as unknown as Json[])[0]
  const driver = '/sys/bus/platform/drivers/vivid'
  const device = await machine.run(`cd ${driver} && echo vivid.*`)
  const pid = await machine.run('systemctl show -P MainPID camera-server')

  await machine.run(`echo ${device} >${driver}/unbind`)
  const gone = await until(first, (camera) => String(camera?.connected) === 'false', 'the camera is gone', CAMERA_LIMIT_MS)
  t.ok(gone?.reason, `told: ${gone?.reason}`)
  t.equal((await api.get('/health')).status, 200, 'the API answers on')
  t.match((await api.post('/api/recording/start', { mode: 'video' })).body, { error: { code: 'CAMERA_NOT_CONNECTED' } })

  await machine.run(`echo ${device} >${driver}/bind`)
  await until(first, (camera) => String(camera?.state) === 'streaming', 'the camera is back', CAMERA_LIMIT_MS)
  await firstPicture(machine, api, CAMERA_LIMIT_MS)
  t.ok((await streamed(machine, '/stream1', 2)) > 5, 'it streams again')
  await plays(t, api)
  t.equal(await machine.run('systemctl show -P MainPID camera-server'), pid, 'the server ran all the time')
  t.ok(
    (await probed(`rtsp://admin:Correct-Horse-9@127.0.0.1:${machine.port('rtsp')}/stream2`, ['-rtsp_transport', 'tcp'])).streams
      .length > 0,
  )
}
