/**
 * Shared libraries of a root file system tree.
 *
 *   libraries.ts prune TREE KEEP [FILE…]   removes those of the library folder that nothing needs: no ELF file that stays, none of the FILEs that
 *                                          come later, none of the names in the list file KEEP (what is opened at run time by name; `*` stands for anything)
 *   libraries.ts check TREE                fails where an ELF file of the tree needs a library that the tree does not have
 */
import { lstatSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { type Wanted, wantedBy } from './elf.ts'

const LIBRARIES = 'usr/lib/x86_64-linux-gnu'

interface Tree {
  /** Regular files that are ELF. */
  readonly wants: ReadonlyMap<string, Wanted>
  /** By file name: what the loader may find, a link's target beside the link. */
  readonly byName: ReadonlyMap<string, readonly string[]>
}

function readTree(root: string): Tree {
  const wants = new Map<string, Wanted>()
  const byName = new Map<string, string[]>()
  for (const entry of readdirSync(root, { withFileTypes: true, recursive: true })) {
    const file = join(entry.parentPath, entry.name)
    if (entry.isFile()) {
      const wanted = wantedBy(file)
      if (wanted) wants.set(file, wanted)
    }
    if (/\.so(\.|$)/.test(entry.name) && (entry.isFile() || entry.isSymbolicLink()))
      byName.set(entry.name, [...(byName.get(entry.name) ?? []), file])
  }
  return { wants, byName }
}

/** The link and all that it leads to. */
function chain(file: string): string[] {
  const found = [file]
  for (let at = file; lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink(); found.push(at))
    at = resolve(dirname(at), readlinkSync(at))
  return found
}

function inLibraryFolder(root: string, file: string): boolean {
  return dirname(file) === join(root, LIBRARIES) && /\.so(\.|$)/.test(basename(file))
}

function prune(root: string, keepFile: string, later: readonly string[]): void {
  const { wants, byName } = readTree(root)
  const keep = patterns(keepFile)
  const needed = new Set<string>()
  const queue = [...wants.keys()].filter((file) => !inLibraryFolder(root, file))
  const want = (wanted: Wanted | null | undefined) => {
    for (const name of [...(wanted?.needed ?? []), ...(wanted?.opened ?? [])])
      for (const file of (byName.get(name) ?? []).flatMap(chain))
        if (!needed.has(file)) {
          needed.add(file)
          queue.push(file)
        }
  }
  want({ needed: [...byName.keys()].filter((name) => keep.some((pattern) => pattern.test(name))), opened: [] })
  for (const file of later) want(wantedBy(file))
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) want(wants.get(file))

  const files = [...byName.values()].flat().filter((file) => inLibraryFolder(root, file) && !needed.has(file))
  for (const file of files) rmSync(file)
  console.log(`${files.length} libraries removed`)
}

function patterns(file: string): RegExp[] {
  const words = readFileSync(file, 'utf8')
    .replace(/#.*/g, '')
    .split(/\s+/)
    .filter((word) => word !== '')
  return words.map((word) => new RegExp(`^${word.replace(/[.+]/g, '\\$&').replaceAll('*', '.*')}$`))
}

function check(root: string): void {
  const { wants, byName } = readTree(root)
  const missing = [...wants].flatMap(([file, { needed }]) =>
    needed
      .filter((name) => !byName.get(name)?.some((found) => chain(found).every(exists)))
      .map((name) => `${relative(root, file)} needs ${name}`),
  )
  for (const line of missing) console.error(line)
  if (missing.length > 0) process.exitCode = 1
}

function exists(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false }) !== undefined
}

const [verb, root, ...rest] = process.argv.slice(2)
const [keepFile, ...later] = rest
if (verb === 'prune' && root && keepFile) prune(resolve(root), keepFile, later)
else if (verb === 'check' && root) check(resolve(root))
else {
  console.error('usage: libraries.ts prune TREE KEEP [FILE…] | check TREE')
  process.exitCode = 2
}
