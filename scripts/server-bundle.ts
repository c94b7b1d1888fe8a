/** The server as one CommonJS file with the console inside: the same for `dist/` and for the single executable but for where its addons lie. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { ADDON_IMPORTS } from './addons.ts'
import { buildWeb, WEB } from './build-web.ts'

export const ROOT = join(import.meta.dirname, '..')
const EMBEDDED_ADDONS = join(ROOT, 'app/server/platform/embedded-addons.ts')
const require = createRequire(import.meta.url)

/** `beside`: in the folder `addons` next to the bundle. `embedded`: assets of the executable. */
export type AddonPlace = 'beside' | 'embedded'

const LOAD: Record<AddonPlace, (addon: string) => string> = {
  beside: (addon) => `require(require('node:path').join(__dirname, 'addons', '${addon}'))`,
  embedded: (addon) => `require(${JSON.stringify(EMBEDDED_ADDONS)}).embeddedAddon('${addon}')`,
}

/** Each package finds its addon in its own way; in the bundle all are found in the same place. */
function nativeAddons(place: AddonPlace): Plugin {
  return {
    name: 'native-addons',
    setup(bundler) {
      bundler.onResolve({ filter: /^(uWebSockets\.js|@node-rs\/bcrypt|node-gyp-build-optional-packages)$/ }, ({ path }) => ({
        path,
        namespace: 'addon',
      }))
      bundler.onLoad({ filter: /.*/, namespace: 'addon' }, ({ path }) => {
        const found = ADDON_IMPORTS[path]
        if (!found) throw new Error(`no addon is known for ${path}`)
        const load = LOAD[place](found.addon)
        return { contents: `module.exports = ${found.throughLoader ? `() => ${load}` : load}`, loader: 'js', resolveDir: ROOT }
      })
      // An optional speed-up of msgpackr that we do not use; it takes the absence well.
      bundler.onResolve({ filter: /^msgpackr-extract$/ }, ({ path }) => ({ path, namespace: 'absent' }))
      bundler.onLoad({ filter: /.*/, namespace: 'absent' }, () => ({ contents: 'module.exports = undefined', loader: 'js' }))
      // Their CommonJS builds: the other ones ask for `import.meta`.
      bundler.onResolve({ filter: /^(lmdb|node-cron)$/ }, ({ path }) => ({ path: require.resolve(path) }))
    },
  }
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

/** Sorted, so that the same files give the same bundle. */
function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return []
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
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

/** Builds the console and the server; answers the source files that went in, relative to the project. */
export async function bundleServer(outfile: string, place: AddonPlace): Promise<string[]> {
  const webInputs = await buildWeb()
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [join(ROOT, 'app/server/main.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    define: { CAMERA_VERSION: JSON.stringify(version), CAMERA_BUILD: JSON.stringify(buildTime()) },
    plugins: [nativeAddons(place), webAssets],
    metafile: true,
    logLevel: 'warning',
    legalComments: 'linked',
  })
  return [...webInputs, ...Object.keys(metafile.inputs)]
}
