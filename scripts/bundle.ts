/** Builds `dist/`: the server as one file, its native addons beside it, and the launcher. Run by `make build`. */
import { chmodSync, copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { addonsOf } from './addons.ts'
import { bundleServer, ROOT } from './server-bundle.ts'

const DIST = join(ROOT, 'dist')
const ADDONS = join(DIST, 'addons')

const LAUNCHER = `#!/bin/sh
# Starts the bundle that lies beside this file.
exec node "$(dirname "$(readlink -f "$0")")/camera-server.cjs" "$@"
`

const { platform, arch, versions } = process
rmSync(ADDONS, { recursive: true, force: true })
mkdirSync(ADDONS, { recursive: true })
for (const addon of addonsOf({ platform, arch, abi: versions.modules })) {
  copyFileSync(join(ROOT, 'node_modules', addon.package, addon.file), join(ADDONS, addon.name))
}
await bundleServer(join(DIST, 'camera-server.cjs'), 'beside')
writeFileSync(join(DIST, 'camera-server'), LAUNCHER)
chmodSync(join(DIST, 'camera-server'), 0o755)
