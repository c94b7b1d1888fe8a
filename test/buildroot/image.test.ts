import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, open, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import t from 'tap'

const ROOT = resolve(import.meta.dirname, '../..')
const COMMON = join(ROOT, 'board/common')

interface Outcome {
  readonly code: number
  readonly text: string
}

function run(command: string, args: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
  return new Promise((done) => {
    execFile(command, args, { timeout: 120_000, env: { ...process.env, ...env } }, (error, out, err) =>
      done({ code: error ? Number(error.code) : 0, text: out + err }),
    )
  })
}

const scratch = await mkdtemp(join(tmpdir(), 'image-'))
t.teardown(() => rm(scratch, { recursive: true, force: true }))
const keys = join(scratch, 'keys')
t.equal((await run(join(ROOT, 'scripts/image/keys.sh'), [keys])).code, 0, 'keys')

/** A target and images folder such as Buildroot leaves them, with a stand-in for each thing that takes hours. */
async function fakeBuild(name: string, flavour: string, kernel: string): Promise<{ target: string; images: string }> {
  const target = join(scratch, name, 'target')
  const images = join(scratch, name, 'images')
  await cp(join(ROOT, 'overlay/common'), target, { recursive: true })
  await cp(join(ROOT, 'overlay', flavour), target, { recursive: true, force: true })
  const files = [join(target, 'boot', kernel)]
  for (const file of [
    'efi-part/EFI/BOOT/bootx64.efi',
    'u-boot.bin',
    'u-boot-rockchip.bin',
    'bcm2711-rpi-4-b.dtb',
    'bcm2711-rpi-400.dtb',
    'bcm2711-rpi-cm4.dtb',
    'rpi-firmware/config.txt',
    'rpi-firmware/start4.elf',
    'rpi-firmware/fixup4.dat',
    'rpi-firmware/overlays/one.dtbo',
  ]) {
    files.push(join(images, file))
  }
  for (const file of files) {
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, 'stand-in')
  }
  await programs(target)
  return { target, images }
}

/** A program with libraries as busybox, and Buildroot's folders and links: the path of its interpreter leads over two of them. */
async function programs(target: string): Promise<void> {
  for (const folder of ['usr/bin', 'usr/lib']) await mkdir(join(target, folder), { recursive: true })
  for (const [link, to] of [
    ['bin', 'usr/bin'],
    ['lib', 'usr/lib'],
    ['lib64', 'lib'],
    ['usr/lib64', 'lib'],
  ] as const)
    await symlink(to, join(target, link))
  await cp('/usr/bin/env', join(target, 'bin/busybox'), { dereference: true })
  const { text } = await run('ldd', ['/usr/bin/env'])
  for (const [library] of text.matchAll(/\/\S+/g))
    await cp(library, join(target, 'usr/lib', basename(library)), { dereference: true })
}

/** Runs the initial RAM disc's busybox, in it. */
async function inInitrd(image: string, ...args: string[]): Promise<Outcome> {
  const folder = await mkdtemp(join(scratch, 'initrd-'))
  const unpacked = await run('bash', ['-c', 'cd "$1" && cpio --extract --quiet <"$2"', 'unpack', folder, image])
  return unpacked.code === 0 ? run('chroot', [folder, '/bin/busybox', ...args]) : unpacked
}

/** Names of the GPT's partitions. */
async function partitions(disk: string): Promise<string[]> {
  const file = await open(disk)
  try {
    const { buffer } = await file.read(Buffer.alloc(128 * 8), 0, 128 * 8, 1024)
    return Array.from({ length: 8 }, (_, i) =>
      buffer
        .subarray(i * 128 + 56, (i + 1) * 128)
        .toString('utf16le')
        .replace(/\0.*$/s, ''),
    ).filter((name) => name !== '')
  } finally {
    await file.close()
  }
}

const BOARDS = [
  { board: 'qemu-x86_64', flavour: 'grub', kernel: 'bzImage', disk: 'disk.img', first: 'esp' },
  { board: 'qemu-aarch64', flavour: 'uboot', kernel: 'Image', disk: 'disk.img', first: 'boot' },
  { board: 'rpi4', flavour: 'uboot', kernel: 'Image', disk: 'sdcard.img', first: 'boot' },
  { board: 'rockpro64', flavour: 'uboot', kernel: 'Image', disk: 'sdcard.img', first: 'boot' },
]

for (const { board, flavour, kernel, disk, first } of BOARDS) {
  t.test(`${board}: disk and bundle`, async (t) => {
    const { target, images } = await fakeBuild(board, flavour, kernel)
    const env = { CAMERA_KEYS: keys, CAMERA_VERSION: '7.8.9', SOURCE_DATE_EPOCH: '1700000000' }

    const built = await run(join(COMMON, 'post-build.sh'), [target, board], env)
    t.equal(built.code, 0, built.text)
    const again = await run(join(COMMON, 'post-build.sh'), [target, board], env)
    t.equal(again.code, 0, 'may run again')
    t.equal(
      await readFile(join(target, 'etc/camera-release'), 'utf8'),
      `VERSION=7.8.9\nBUILD=2023-11-14T22:13:20Z\nCOMPATIBLE=camera-server-${board}\nBOARD=${board}\nCHANNEL=development\n`,
    )
    t.match(await readFile(join(target, 'etc/rauc/system.conf'), 'utf8'), `compatible=camera-server-${board}\n`)
    t.match(await inInitrd(join(target, 'boot/initrd.img'), 'TEST=here'), { code: 0, text: /TEST=here/ }, 'initial RAM disc')

    const squashed = await run('mksquashfs', [target, join(images, 'rootfs.squashfs'), '-quiet', '-no-progress', '-comp', 'gzip'])
    t.equal(squashed.code, 0, squashed.text)
    const made = await run(join(COMMON, 'post-image.sh'), [images, board], env)
    t.equal(made.code, 0, made.text)
    t.same(await partitions(join(images, disk)), [first, 'bootstate', 'rootfs-a', 'rootfs-b', 'data'])
    const info = await run('rauc', ['info', `--keyring=${keys}/ca.cert.pem`, join(images, 'update.raucb')])
    t.match(info.text, `camera-server-${board}`)
    t.match(info.text, '7.8.9')
    if (flavour === 'grub') {
      const env = await readFile(join(images, 'grubenv'), 'utf8')
      t.equal(env.length, 1024)
      t.match(env, /^# GRUB Environment Block\nORDER=A B\nA_OK=1\nA_TRY=0\nB_OK=0\nB_TRY=0\n#+$/)
    } else {
      t.equal((await stat(join(images, 'bootstate.img'))).size, 0x20000, 'two copies, as in fw_env.config')
    }
  })
}

t.test('a release refuses development keys', async (t) => {
  const { target } = await fakeBuild('release', 'uboot', 'Image')
  const outcome = await run(join(COMMON, 'post-build.sh'), [target, 'rpi4'], { CAMERA_KEYS: keys, CAMERA_CHANNEL: 'release' })
  t.equal(outcome.code, 1)
  t.match(outcome.text, 'a release image is not built with a development key')

  const own = join(scratch, 'own')
  t.equal((await run(join(ROOT, 'scripts/image/keys.sh'), ['--release', 'Example', own])).code, 0)
  const accepted = await run(join(COMMON, 'post-build.sh'), [target, 'rpi4'], { CAMERA_KEYS: own, CAMERA_CHANNEL: 'release' })
  t.equal(accepted.code, 0, accepted.text)
})

t.test('a signing key that is not there is told before anything is built; one in a token is not looked for', async (t) => {
  const check = (key: string) =>
    run(join(ROOT, 'scripts/buildroot/check-keys.sh'), [], { CAMERA_KEYS: keys, CAMERA_SIGNING_KEY: key })
  t.match(await check(join(scratch, 'lost.pem')), { code: 1, text: /no signing key: .*lost\.pem/ })
  t.equal((await check('pkcs11:token=update')).code, 0)
})

t.test('a fragment that the kernel has dropped is named', async (t) => {
  const config = join(scratch, 'config')
  const fragment = join(scratch, 'fragment')
  await writeFile(fragment, 'CONFIG_ONE=y\nCONFIG_TWO=n\n# CONFIG_THREE is not set\n')
  await writeFile(config, 'CONFIG_ONE=y\n# CONFIG_TWO is not set\n')
  t.equal((await run(join(COMMON, 'check-fragments.sh'), [config, fragment])).code, 0)
  await writeFile(config, 'CONFIG_ONE=m\nCONFIG_TWO=y\nCONFIG_THREE=y\n')
  const outcome = await run(join(COMMON, 'check-fragments.sh'), [config, fragment])
  t.equal(outcome.code, 1)
  t.match(outcome.text, /CONFIG_ONE=y.*CONFIG_TWO=n.*CONFIG_THREE is not set/s)
})
