/**
 * A C and C++ library that is new enough for the addons of Node 24 (glibc 2.38), from Debian 13, unpacked and not installed. The mirror and the
 * keys are those of this machine.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
const SUITE = 'trixie'
const PACKAGES = ['libc6', 'libstdc++6', 'libgcc-s1']
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
const TIMEOUT_MS = 240_000

export type DebianArch = 'amd64' | 'arm64'

/** The root folder in which the libraries lie as they would on the device. Fetched once. */
export function cLibrary(arch: DebianArch): string {
  const folder = join(ROOT, 'build', 'sea', `c-library-${SUITE}-${arch}`)
  if (existsSync(folder)) return folder
  mkdirSync(join(ROOT, 'build', 'sea'), { recursive: true })
  const scratch = mkdtempSync(join(ROOT, 'build', 'sea', '.c-library-'))
  try {
    const options = privateApt(join(scratch, 'apt'), arch)
    const apt = (...args: string[]) =>
      execFileSync('apt-get', [...options, ...args], { cwd: scratch, stdio: 'pipe', timeout: TIMEOUT_MS })
    apt('update')
    apt('download', ...PACKAGES)
    for (const file of readdirSync(scratch).filter((name) => name.endsWith('.deb'))) {
      execFileSync('dpkg-deb', ['--extract', join(scratch, file), join(scratch, 'root')], { timeout: TIMEOUT_MS })
    }
    // As on an installed system; the programs ask for their loader by these names.
    for (const name of readdirSync(join(scratch, 'root', 'usr')).filter((entry) => entry.startsWith('lib'))) {
      symlinkSync(join('usr', name), join(scratch, 'root', name))
    }
    renameSync(join(scratch, 'root'), folder)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
  return folder
}

/** Options that let apt know nothing but the one suite, and leave the machine's own state alone. */
function privateApt(folder: string, arch: DebianArch): string[] {
  for (const part of ['state/lists/partial', 'cache/archives/partial', 'parts'])
    mkdirSync(join(folder, part), { recursive: true })
  const sources = join(folder, 'sources.list')
  const status = join(folder, 'status')
  writeFileSync(sources, `deb [signed-by=${KEYRING}] ${mirror()} ${SUITE} main\n`)
  writeFileSync(status, '')
  const settings = {
    'Dir::State': join(folder, 'state'),
    'Dir::State::status': status,
    'Dir::Cache': join(folder, 'cache'),
    'Dir::Etc::sourcelist': sources,
    'Dir::Etc::sourceparts': join(folder, 'parts'),
    'Dir::Etc::preferencesparts': join(folder, 'parts'),
    'APT::Architecture': arch,
    'APT::Architectures': arch,
    'APT::Sandbox::User': '',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '3',
  }
  return Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
}

/** Of this machine's own sources, the one that has Debian's main archive. Apt knows it once it has fetched the lists. */
function mirror(): string {
  const found = knownMirror()
  if (found) return found
  execFileSync('apt-get', ['update', '-qq'], { stdio: 'pipe', timeout: TIMEOUT_MS })
  const fetched = knownMirror()
  if (!fetched) throw new Error('this machine has no apt source of Debian')
  return fetched
}

function knownMirror(): string | undefined {
  const format = ['--format', '$(REPO_URI) $(SUITE)', 'Created-By: Packages', 'Label: Debian']
  const known = execFileSync('apt-get', ['indextargets', ...format], { encoding: 'utf8', timeout: TIMEOUT_MS })
  const line = known.split('\n').find((text) => text !== '' && !/updates|backports/.test(text))
  return line?.split(' ')[0]
}
