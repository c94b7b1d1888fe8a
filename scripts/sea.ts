/**
 * Builds the server as a single executable: `sea.ts ARCH [NODE]` makes `dist/camera-server-ARCH` (with a Node version of choice:
 * `dist/camera-server-ARCH-nodeNODE`) and its licence record beside it. Run by `make sea`.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { addonsOf } from './addons.ts'
import { licenceRecord, packagesOf } from './licences.ts'
import { fetchPackage, lockedPackage } from './npm-package.ts'
import { bundleServer, ROOT } from './server-bundle.ts'

/** What the firmware carries. */
const DEFAULT_NODE = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { config: { node: string } }).config.node
/** Of the packages `node-linux-ARCH`: Node's own executables. */
const NODE_INTEGRITY: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '24.21.0': {
    x64: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
    arm64: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  },
  // For machines whose C library is too old for the addons of Node 24.
  '20.20.2': {
    x64: 'sha512-PeHQM8wAdmHtZA1mBocygZxs5LiUWtsJezQTkBd0iY987KpGrD1O2tVEydvMZiuXceRanxt7rjTnDEBwOPujoQ==',
    arm64: 'sha512-LCXJnNTFiyGuYBw2gZSI5OBFMbkjAPt8sqD/NKrWoE2QmDgSubTqFng6GaNJ9EJ8HpxBMGcWWpbbcs4Vo+CnGg==',
  },
}
const STRIP: Readonly<Record<string, string>> = { x64: 'x86_64-linux-gnu-strip', arm64: 'aarch64-linux-gnu-strip' }
/** The mark in Node's executable that the injection turns. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'
const LINKED_LICENCES = join(ROOT, 'scripts/linked-licences.txt')
const STEP_TIMEOUT_MS = 300_000
const require = createRequire(import.meta.url)

function nodePackage(version: string, arch: string): string {
  const integrity = NODE_INTEGRITY[version]?.[arch]
  if (!integrity) {
    throw new Error(`no Node ${version} for ${arch}; there are ${Object.keys(NODE_INTEGRITY).join(', ')} for x64 and arm64`)
  }
  return fetchPackage({ name: `node-linux-${arch}`, version, integrity })
}

function run(command: string, args: readonly string[], cwd: string): string {
  return execFileSync(command, args, { cwd, encoding: 'utf8', timeout: STEP_TIMEOUT_MS, stdio: 'pipe' })
}

async function buildExecutable(arch: string, version: string): Promise<void> {
  const target = nodePackage(version, arch)
  // Node of the same version reads its own blob format; the blob holds no machine code, so that one of this machine serves all targets.
  const node = join(nodePackage(version, process.arch), 'bin/node')
  const abi = run(node, ['-p', 'process.versions.modules'], ROOT).trim()
  const work = join(ROOT, 'build', 'sea', `${arch}-node${version}`)
  rmSync(work, { recursive: true, force: true })
  mkdirSync(work, { recursive: true })

  const inputs = await bundleServer(join(work, 'server.cjs'), 'embedded')
  const assets: Record<string, string> = {}
  const addonFolders: string[] = []
  for (const addon of addonsOf({ platform: 'linux', arch, abi })) {
    const shipped = addon.package === 'uWebSockets.js'
    const folder = shipped ? join(ROOT, 'node_modules', addon.package) : fetchPackage(lockedPackage(addon.package))
    copyFileSync(join(folder, addon.file), join(work, addon.name))
    assets[addon.name] = addon.name
    addonFolders.push(folder, join(ROOT, 'node_modules', addon.owner))
  }
  // Relative names: the blob holds them, and the same sources shall give the same executable in any folder.
  const config = {
    main: 'server.cjs',
    output: 'blob',
    disableExperimentalSEAWarning: true,
    useCodeCache: false,
    useSnapshot: false,
    assets,
  }
  writeFileSync(join(work, 'sea.json'), JSON.stringify(config))
  run(node, ['--experimental-sea-config', 'sea.json'], work)

  // Before the injection: afterwards strip takes the blob, and more, away.
  run(STRIP[arch] ?? 'strip', ['-o', 'camera-server', join(target, 'bin/node')], work)
  run(
    process.execPath,
    [require.resolve('postject/dist/cli.js'), 'camera-server', 'NODE_SEA_BLOB', 'blob', '--sentinel-fuse', FUSE],
    work,
  )

  const out = join(ROOT, 'dist', `camera-server-${arch}${version === DEFAULT_NODE ? '' : `-node${version}`}`)
  mkdirSync(join(ROOT, 'dist'), { recursive: true })
  const folders = [target, ...addonFolders, ...packagesOf(inputs).map((folder) => join(ROOT, folder))]
  const title = `Licences of what camera-server for ${arch} is made of, Node ${version} and all packages inside.`
  writeFileSync(
    `${out}.licenses.txt`,
    licenceRecord(title, readFileSync(join(ROOT, 'LICENSE'), 'utf8'), folders, [LINKED_LICENCES]),
  )
  renameSync(join(work, 'camera-server'), out)
}

const [arch, version = DEFAULT_NODE] = process.argv.slice(2)
if (!arch || !(arch in STRIP)) {
  process.stderr.write('usage: sea.ts x64|arm64 [NODE-VERSION]\n')
  process.exit(2)
}
await buildExecutable(arch, version)
