/** Builds the web console into `build/web/`, from where the bundle takes it. Run by the bundle script, or alone. */
import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const ROOT = join(import.meta.dirname, '..')
const SOURCE = join(ROOT, 'app', 'web')
export const WEB = join(ROOT, 'build', 'web')

/** Answers the source files that went in, relative to the project. */
export async function buildWeb(): Promise<string[]> {
  rmSync(WEB, { recursive: true, force: true })
  mkdirSync(WEB, { recursive: true })
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: {
      app: join(SOURCE, 'src', 'main.tsx'),
      monitoring: join(SOURCE, 'src', 'monitoring.tsx'),
      style: join(SOURCE, 'style.css'),
    },
    outdir: WEB,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  })
  for (const name of ['index.html', 'monitoring.html', 'icon.svg']) copyFileSync(join(SOURCE, name), join(WEB, name))
  return Object.keys(metafile.inputs)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildWeb()
