/**
 * Update bundles for the tests, made out of the reference image's tree: good ones, ones that must be refused, and ones whose system fails at each stage.
 * They are made once for an image and kept. Where nothing behind the kernel is ever reached, nothing else is in the bundle: it installs in a second.
 */
import { execFile } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { IMAGE_DIR } from '../../../scripts/image/qemu.ts'
import { stamp } from './disk.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../../..')
const TREE = join(IMAGE_DIR, 'rootfs')
const FOLDER = join(ROOT, 'build/image/test')
const BUNDLE_LIMIT_MS = 300_000

export const COMPATIBLE = 'camera-server-reference-x86_64'

/** VERSION of the image. */
export function imageVersion(): string {
  const version = /^VERSION=(.*)$/m.exec(readFileSync(join(TREE, 'etc/camera-release'), 'utf8'))?.[1]
  if (!version) throw new Error(`no version in ${TREE}/etc/camera-release`)
  return version
}

/** The image's version with its middle number raised by so many. */
export function laterVersion(by: number): string {
  const [major = '0', minor = '0'] = imageVersion().split('.')
  return `${major}.${Number(minor) + by}.0`
}

interface Bundle {
  readonly version: string
  /** Makes the tree in that empty folder; absent: the image's own. */
  readonly tree?: (folder: string) => void | Promise<void>
  /** Further options of bundle.sh. */
  readonly options?: () => string[] | Promise<string[]>
}

const BUNDLES = {
  good: { version: laterVersion(1) },
  /** The server ends at once, every time. */
  'server-crashes': { version: laterVersion(2), tree: serverCrashes },
  /** No root file system that the kernel could mount: it panics. */
  'kernel-panics': { version: laterVersion(3), tree: kernelPanics },
  /** The boot loader finds no kernel in it. */
  'kernel-garbage': { version: laterVersion(4), tree: kernelGarbage },
  /** The first process does nothing, and does not feed the watchdog. */
  'init-hangs': { version: laterVersion(5), tree: initHangs },
  'wrong-compatible': { version: laterVersion(6), tree: nameOnly, options: () => ['--compatible', 'camera-server-toaster'] },
  'foreign-signature': { version: laterVersion(7), tree: nameOnly, options: foreignKeys },
  older: { version: '0.0.1', tree: nameOnly },
} satisfies Record<string, Bundle>

export type BundleName = keyof typeof BUNDLES

export function bundleVersion(name: BundleName): string {
  return BUNDLES[name].version
}

/** The bundle's file; made where it is missing or the image has changed since. */
export async function bundle(name: BundleName): Promise<string> {
  const file = join(FOLDER, 'bundles', `${name}.raucb`)
  const made = `${stamp(join(IMAGE_DIR, 'rootfs.squashfs'))}, ${stamp(import.meta.filename)}`
  if (existsSync(file) && existsSync(`${file}.of`) && readFileSync(`${file}.of`, 'utf8') === made) return file
  rmSync(file, { force: true })
  mkdirSync(dirname(file), { recursive: true })
  const { version, tree, options }: Bundle = BUNDLES[name]
  const scratch = mkdtempSync(join(FOLDER, 'tree-'))
  try {
    await tree?.(scratch)
    const from = tree ? scratch : TREE
    const args = ['--root', from, '--version', version, '--out', file, '--fast', ...((await options?.()) ?? [])]
    await run(join(ROOT, 'scripts/image/bundle.sh'), args, { timeout: BUNDLE_LIMIT_MS })
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
  writeFileSync(`${file}.of`, made)
  return file
}

/** Part of a bundle gone bad on the way: one byte in the middle is another. */
export async function damaged(name: BundleName): Promise<string> {
  const good = await bundle(name)
  const file = join(dirname(good), `${name}-damaged.raucb`)
  const bytes = readFileSync(good)
  const middle = Math.floor(bytes.length / 2)
  bytes[middle] = (bytes[middle] ?? 0) ^ 0xff
  writeFileSync(`${file}.new`, bytes)
  renameSync(`${file}.new`, file)
  return file
}

/** The whole tree with hard links, which costs a second; a file that changes is replaced, never written into. */
async function serverCrashes(folder: string): Promise<void> {
  await run('cp', ['-al', `${TREE}/.`, folder])
  const server = join(folder, 'usr/bin/camera-server')
  rmSync(server)
  writeFileSync(server, '#!/bin/sh\necho "this release is broken on purpose" >&2\nexit 1\n')
  chmodSync(server, 0o755)
}

function take(folder: string, ...files: string[]): void {
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    copyFileSync(join(TREE, file), join(folder, file))
  }
}

/** Enough for one that is never installed. */
function nameOnly(folder: string): void {
  take(folder, 'etc/camera-release')
}

function bootFiles(folder: string): void {
  take(folder, 'etc/camera-release', 'boot/vmlinuz', 'boot/initrd.img')
}

function kernelPanics(folder: string): void {
  bootFiles(folder)
  writeFileSync(join(folder, 'boot/initrd.img'), 'this is no archive')
}

function kernelGarbage(folder: string): void {
  bootFiles(folder)
  writeFileSync(join(folder, 'boot/vmlinuz'), Buffer.alloc(1 << 20, 'this is no kernel'))
}

function initHangs(folder: string): void {
  bootFiles(folder)
  for (const name of ['sbin', 'bin', 'dev', 'proc', 'sys']) mkdirSync(join(folder, name))
  copyFileSync(join(TREE, 'usr/bin/busybox'), join(folder, 'bin/busybox'))
  writeFileSync(join(folder, 'sbin/init'), '#!/bin/busybox sh\nexec /bin/busybox sleep 1000000\n')
  for (const name of ['bin/busybox', 'sbin/init']) chmodSync(join(folder, name), 0o755)
}

/** Signed well, by somebody whom the device does not know. */
async function foreignKeys(): Promise<string[]> {
  const keys = join(FOLDER, 'foreign-keys')
  await run(join(ROOT, 'scripts/image/keys.sh'), [keys])
  return ['--cert', join(keys, 'signing.cert.pem'), '--key', join(keys, 'signing.key.pem')]
}
