/**
 * Builds `dist/`: the console, then the server as one CommonJS file with the console inside, its native addons beside it, and the launcher.
 * Run by `make build`.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { buildWeb } from './build-web.ts'

const ROOT = join(import.meta.dirname, '..')
const DIST = join(ROOT, 'dist')
const ADDONS = join(DIST, 'addons')
const WEB = join(ROOT, 'build', 'web')
const require = createRequire(import.meta.url)

/** The addon files of this platform, by the name that they get in `dist/addons`. */
function addonFiles(): Record<string, string> {
  const { platform, arch, versions } = process
  const folder = (name: string) => join(ROOT, 'node_modules', name)
  return {
    'uws.node': join(folder('uWebSockets.js'), `uws_${platform}_${arch}_${versions.modules}.node`),
    'lmdb.node': join(folder(`@lmdb/lmdb-${platform}-${arch}`), 'node.napi.glibc.node'),
    'bcrypt.node': join(folder(`@node-rs/bcrypt-${platform}-${arch}-gnu`), `bcrypt.${platform}-${arch}-gnu.node`),
  }
}

/** Each package finds its addon in its own way; in the bundle all lie in `addons/`. */
const nativeAddons: Plugin = {
  name: 'native-addons',
  setup(bundler) {
    const load = (file: string) => `require(require('node:path').join(__dirname, 'addons', '${file}'))`
    const virtual: Record<string, string> = {
      'uWebSockets.js': `module.exports = ${load('uws.node')}`,
      '@node-rs/bcrypt': `module.exports = ${load('bcrypt.node')}`,
      // lmdb asks this loader for its addon.
      'node-gyp-build-optional-packages': `module.exports = () => ${load('lmdb.node')}`,
    }
    bundler.onResolve({ filter: /^(uWebSockets\.js|@node-rs\/bcrypt|node-gyp-build-optional-packages)$/ }, ({ path }) => ({
      path,
      namespace: 'addon',
    }))
    bundler.onLoad({ filter: /.*/, namespace: 'addon' }, ({ path }) => ({ contents: virtual[path] ?? '', loader: 'js' }))
    // Their CommonJS builds: the other ones ask for `import.meta`.
    bundler.onResolve({ filter: /^(lmdb|node-cron)$/ }, ({ path }) => ({ path: require.resolve(path) }))
  },
}

/** Puts the built console into the bundle. */
const webAssets: Plugin = {
  name: 'web-assets',
  setup(bundler) {
    bundler.onLoad({ filter: /web-assets\.ts$/ }, () => {
      const entries = filesBelow(WEB).map((file) => {
        const name = JSON.stringify(relative(WEB, file))
        return `[${name}, Buffer.from('${readFileSync(file).toString('base64')}', 'base64')]`
      })
      return { contents: `export const WEB_ASSETS = new Map([${entries.join(',')}])`, loader: 'js' }
    })
  },
}

function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return []
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

/** The commit's time, so that the same sources give the same bundle; the present where there is no repository. */
function buildTime(): string {
  try {
    const seconds = execFileSync('git', ['log', '-1', '--format=%ct'], {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    return new Date(Number(seconds) * 1000).toISOString()
  } catch {
    return new Date().toISOString()
  }
}

async function buildServer(): Promise<void> {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  await build({
    entryPoints: [join(ROOT, 'app/server/main.ts')],
    outfile: join(DIST, 'camera-server.cjs'),
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    // Optional speed-ups of msgpackr and of bun's loader, which we do not use.
    external: ['msgpackr-extract', 'bun:ffi'],
    define: { CAMERA_VERSION: JSON.stringify(version), CAMERA_BUILD: JSON.stringify(buildTime()) },
    plugins: [nativeAddons, webAssets],
    logLevel: 'warning',
    legalComments: 'linked',
  })
}

const LAUNCHER = `#!/bin/sh
# Starts the bundle that lies beside this file.
exec node "$(dirname "$(readlink -f "$0")")/camera-server.cjs" "$@"
`

rmSync(ADDONS, { recursive: true, force: true })
mkdirSync(ADDONS, { recursive: true })
for (const [name, file] of Object.entries(addonFiles())) copyFileSync(file, join(ADDONS, name))
await buildWeb()
await buildServer()
writeFileSync(join(DIST, 'camera-server'), LAUNCHER)
chmodSync(join(DIST, 'camera-server'), 0o755)
