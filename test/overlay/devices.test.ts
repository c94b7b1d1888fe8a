/** Cameras, media and the reset button, as udev and the board's file tell of them. */
import { mkdirSync, symlinkSync } from 'node:fs'
import t from 'tap'
import { eachShell, type Machine } from './machine.ts'

const FILE = '/run/camera-env'

/** Video devices, true where udev's rules found that they capture. */
function plug(machine: Machine, devices: Readonly<Record<number, boolean>>): void {
  const cases: string[] = []
  for (const [number, captures] of Object.entries(devices)) {
    machine.write(`/dev/video${number}`, '')
    if (captures) cases.push(`*' /dev/video${number}') echo ID_V4L_VERSION=2; echo CAMERA_CAPTURE=1 ;;`)
  }
  machine.stub('udevadm', `case "$*" in ${cases.join('\n')} *) : ;; esac`)
}

eachShell(t, 'every capture device is a camera, in the order of its number', (t, machine) => {
  plug(machine, { 10: true, 2: true, 1: false, 0: true })
  machine.write('/dev/videoX', '')
  t.equal(machine.run('cameras-env').status, 0)
  t.equal(
    machine.read(FILE),
    'CAMERA_CAMERA="v4l2:/dev/video0,audio=auto v4l2:/dev/video2,audio=auto v4l2:/dev/video10,audio=auto"\n',
  )
  t.equal(machine.calls()[0], 'udevadm settle -t 10', 'devices that are just being found count')
  t.equal(machine.run('cameras-env', ['hotplug']).status, 0)
  t.same(machine.calls('systemctl'), [], 'a server with cameras is left alone')
})

eachShell(t, 'without one there is the test source, until one is plugged in', (t, machine) => {
  t.equal(machine.run('cameras-env', ['hotplug']).status, 0)
  t.notOk(machine.has(FILE), 'before the first start there is nothing to do')
  plug(machine, { 1: false })
  machine.run('cameras-env')
  t.equal(machine.read(FILE), 'CAMERA_CAMERA="test:1280x720@30"\n')
  machine.run('cameras-env', ['hotplug'])
  t.same(machine.calls('systemctl'), [])
  plug(machine, { 0: true })
  machine.run('cameras-env', ['hotplug'])
  t.same(machine.calls('systemctl'), ['systemctl --no-block try-restart camera-server.service'])
})

function medium(machine: Machine, type: string, label: string): void {
  machine.stub('udevadm', `echo ID_FS_TYPE=${type}; echo 'ID_FS_LABEL=${label}'`)
  machine.stub('id', 'echo 990')
  machine.stub('mountpoint', 'exit 1')
}

eachShell(t, 'a stick is mounted for the server, harmlessly, and goes again', (t, machine) => {
  medium(machine, 'vfat', 'HOLIDAY')
  t.equal(machine.run('media', ['mount', 'sda1']).status, 0)
  t.match(machine.calls('mount'), [
    /^mount -t vfat -o nosuid,nodev,noexec,noatime,uid=990,gid=990,fmask=0177,dmask=0077,flush,utf8=1 \/dev\/sda1 \S+\/media\/HOLIDAY$/,
  ])
  t.same(machine.list('/media'), ['HOLIDAY'])
  t.equal(machine.run('media', ['unmount', 'sda1']).status, 0)
  t.same(machine.list('/media'), [])
  t.equal(machine.run('media', ['unmount', 'sda1']).status, 0)
})

eachShell(t, "the system's own disc is none of the server's, even where it is a stick", (t, machine) => {
  medium(machine, 'ext4', 'x')
  machine.stub('mountpoint', '[ "$1" != -d ] || echo 8:5; [ "$1" = -d ]')
  mkdirSync(machine.at('/sys/class/block'), { recursive: true })
  mkdirSync(machine.at('/sys/dev/block'), { recursive: true })
  for (const part of ['sda/sda2', 'sda/sda5', 'sdb/sdb1']) {
    machine.write(`/sys/devices/${part}/partition`, '1')
    symlinkSync(machine.at(`/sys/devices/${part}`), machine.at(`/sys/class/block/${part.slice(4)}`))
  }
  symlinkSync(machine.at('/sys/devices/sda/sda5'), machine.at('/sys/dev/block/8:5'))
  for (const device of ['sda2', 'sda5']) {
    t.equal(machine.run('media', ['mount', device]).status, 0)
    t.equal(machine.run('media', ['unmount', device]).status, 0)
  }
  t.same([...machine.calls('mount'), ...machine.calls('umount')], [])
  t.equal(machine.run('media', ['mount', 'sdb1']).status, 0)
  t.equal(machine.calls('mount').length, 1)
})

eachShell(t, 'names of media', (t, machine) => {
  for (const [label, name] of [
    ['', 'sda1'],
    ['data', 'sda1'],
    ['.hidden', 'sda1'],
    ['-rf', 'sda1'],
    ['../../etc', 'sda1'],
    ['My stick; reboot', 'Mystickreboot'],
    ['x'.repeat(60), 'x'.repeat(32)],
  ] as const) {
    medium(machine, 'exfat', label)
    t.equal(machine.run('media', ['mount', 'sda1']).status, 0)
    t.same(machine.list('/media'), [name], label)
    machine.run('media', ['unmount', 'sda1'])
  }
  medium(machine, 'swap', 'x')
  t.not(machine.run('media', ['mount', 'sda1']).status, 0)
  for (const device of ['', '../sda1', 'a b', 'sda1;x']) t.not(machine.run('media', ['mount', device]).status, 0, device)
  medium(machine, 'ext4', 'x')
  machine.stub('mount', 'exit 32')
  t.not(machine.run('media', ['mount', 'sda1']).status, 0)
  t.same(machine.list('/media'), [], 'no folder is left where nothing could be mounted')
})

eachShell(t, 'the reset button', (t, machine) => {
  t.not(machine.run('reset-button', ['check']).status, 0, 'no board says so')
  machine.write('/etc/camera-board.env', 'RESET_GPIO="gpiochip0 26"\nRESET_HOLD=2\n')
  machine.stub('sleep')
  if (machine.shell === 'busybox') t.not(machine.run('reset-button', ['check']).status, 0, 'no tool')
  // Held from the start, as a line that is stuck; let go, pressed once, let go, then held.
  machine.stub(
    'gpioget',
    `n=$(grep -c ^gpioget '${machine.folder}/calls'); case $n in 4 | 6) echo '"26"=active' ;; *) echo '"26"=inactive' ;; esac`,
  )
  t.equal(machine.run('reset-button', ['check']).status, 0)
  t.equal(machine.run('reset-button', ['watch']).status, 0)
  t.equal(machine.calls('gpioget').length, 8)
  t.equal(machine.read('/data/system/factory-reset'), 'keep=-\n')
  t.same(machine.calls('systemctl'), ['systemctl reboot'])
  for (const bad of ['', 'gpiochip0', 'a;b 1', '$(id) 1']) {
    machine.write('/etc/camera-board.env', `RESET_GPIO="${bad}"\n`)
    t.not(machine.run('reset-button', ['check']).status, 0, bad)
  }
})
