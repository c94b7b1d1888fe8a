/** The licence record that goes with an executable: the texts of all that is inside, as their packages carry them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const LICENCE_FILE = /^(licen[cs]e|copying|notice|copyright)([.-].*)?$/i
const PACKAGE_FOLDER = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/
const RULE = '='.repeat(80)

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license?: string
}

/** The package folders, each once, that the given source files belong to. */
export function packagesOf(files: readonly string[]): string[] {
  const folders = files.flatMap((file) => PACKAGE_FOLDER.exec(file)?.[0] ?? [])
  return [...new Set(folders)].sort()
}

/** One section a package. `notes` are the texts for what is linked into an addon whose package is silent about it. */
export function licenceRecord(title: string, ownLicence: string, folders: readonly string[], notes: readonly string[]): string {
  const sections = [...new Set(folders)].map(packageSection).sort()
  return `${[title, `${RULE}\ncamera-server\n\n${ownLicence.trim()}`, ...sections, ...notes.map(noteSection)].join('\n\n')}\n`
}

function packageSection(folder: string): string {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
  const head = `${RULE}\n${manifest.name} ${manifest.version} (${manifest.license ?? 'no licence named'})`
  const texts = licenceFiles(folder).map((file) => `--- ${relative(folder, file)}\n${readFileSync(file, 'utf8').trim()}`)
  return [head, ...(texts.length > 0 ? texts : ['The package carries no text of its own; what it declares is above.'])].join(
    '\n\n',
  )
}

function noteSection(file: string): string {
  return `${RULE}\n${readFileSync(file, 'utf8').trim()}`
}

/** Those of the package and of what it brings along in folders; not of packages nested in it, which have their own section. */
function licenceFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && LICENCE_FILE.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !relative(folder, file).includes('node_modules/'))
    .sort()
}
