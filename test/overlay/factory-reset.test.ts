/** The factory reset on a real tree: what stays, what goes, and that a power cut at any step changes nothing about the end. */
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Machine, SHELLS } from './machine.ts'

const FILES = {
  'system/rauc.status': 'status',
  'system/boot/pending': 'slot=A',
  'system/boot/attempts': 'x',
  'system/boot/releases': 'A=1',
  'system/machine-id': 'x',
  'system/network/10-camera-eth0.network': '[Match]',
  'system/ssh/ssh_host_ed25519_key': 'x',
  'system/.hidden': 'x',
  'camera/persistent/tag-categories.json': '{"tags":1}',
  'camera/persistent/users-carry-over.json': '{"users":1}',
  'camera/persistent/other.json': 'x',
  'camera/store/data.mdb': 'x',
  'camera/recordings/2026/a.mp4': 'x',
  'camera/recordings/2026/b.mp4': 'x',
  '.top': 'x',
  '..odd': 'x',
  'with blank/x': 'x',
} as const

const ALWAYS = ['camera/persistent/tag-categories.json', 'system/boot/pending', 'system/boot/releases', 'system/rauc.status']
const NETWORK = 'system/network/10-camera-eth0.network'
const USERS = 'camera/persistent/users-carry-over.json'

function fill(machine: Machine, keep: string): string {
  for (const [path, content] of Object.entries(FILES)) machine.write(`/data/${path}`, content)
  machine.write('/data/lost+found/#12', 'a piece of a recording')
  machine.write('/data/system/factory-reset', `keep=${keep}\n`)
  return machine.at('/data')
}

/** Every file with its content; folders that are empty do not count. */
function contents(folder: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isSymbolicLink()) found[path.slice(folder.length + 1)] = `-> ${readlinkSync(path)}`
    else if (entry.isFile()) found[path.slice(folder.length + 1)] = readFileSync(path, 'utf8')
  }
  return found
}

for (const shell of SHELLS) {
  for (const [keep, more] of [
    ['-', []],
    ['network', [NETWORK]],
    ['users', [USERS]],
    ['network,users', [NETWORK, USERS]],
  ] as const) {
    t.test(`keeps ${keep} (${shell})`, async (t) => {
      const machine = new Machine(t, shell)
      const tree = fill(machine, keep)
      const result = machine.run('factory-reset', [tree])
      t.equal(result.status, 0, result.stderr)
      t.same(contents(tree), Object.fromEntries([...ALWAYS, ...more].map((path) => [path, FILES[path as keyof typeof FILES]])))
      t.ok(existsSync(join(tree, 'lost+found')))
      t.equal(machine.run('factory-reset', [tree]).status, 0, 'without a request there is nothing to do')
    })
  }

  t.test(`links of the server's user lead nowhere (${shell})`, async (t) => {
    const machine = new Machine(t, shell)
    const tree = fill(machine, 'users')
    machine.write('/secret/tag-categories.json', 'secret')
    rmSync(machine.at('/data/camera/persistent'), { recursive: true })
    symlinkSync(machine.at('/secret'), machine.at('/data/camera/persistent'))
    t.equal(machine.run('factory-reset', [tree]).status, 0)
    t.equal(machine.read('/secret/tag-categories.json'), 'secret', 'neither moved nor removed')
    t.same(Object.keys(contents(tree)).sort(), ['system/boot/pending', 'system/boot/releases', 'system/rauc.status'])
  })

  // Every command that changes something is counted; before the chosen one, or half way through it, the whole session is killed.
  t.test(`a power cut at any step (${shell})`, async (t) => {
    const machine = new Machine(t, shell)
    const counter = join(machine.folder, 'steps')
    const tools = shell === 'dash' ? '/usr/bin:/bin' : join(machine.folder, 'applets')
    for (const name of ['mv', 'rm', 'mkdir', 'chmod', 'chown', 'sync'])
      machine.stub(
        name,
        `PATH=${tools}
        echo ${name} >>'${counter}'
        if [ "$(wc -l <'${counter}')" = "$DIE_AT" ]; then
          if [ "$DIE_HOW" = half ]; then for last; do :; done; find "$last" -type f | head -n 1 | xargs -r rm -f; fi
          kill -9 0
        fi
        exec ${name} "$@"`,
      )
    const rerun = (dieAt: number, how: string) => {
      rmSync(machine.at('/data'), { recursive: true, force: true })
      const tree = fill(machine, 'network,users')
      machine.write('/../steps', '')
      const env = { DIE_AT: String(dieAt), DIE_HOW: how }
      const cut = machine.run('factory-reset', [tree], { env, session: true })
      return { tree, cut }
    }

    const { tree, cut } = rerun(0, '')
    t.equal(cut.status, 0, cut.stderr)
    const steps = readFileSync(counter, 'utf8').split('\n').filter(Boolean)
    t.ok(steps.length > 20, `${steps.length} steps`)
    const wanted = contents(tree)
    t.same(Object.keys(wanted).sort(), [...ALWAYS, NETWORK, USERS].sort())

    const wrong: string[] = []
    for (const [index, name] of steps.entries()) {
      for (const how of name === 'rm' ? ['before', 'half'] : ['before']) {
        const { tree, cut } = rerun(index + 1, how)
        if (cut.status === 0) wrong.push(`${how} ${name} ${index}: was not cut`)
        machine.run('factory-reset', [tree])
        if (JSON.stringify(contents(tree)) !== JSON.stringify(wanted))
          wrong.push(`${how} ${name} ${index}: ${Object.keys(contents(tree)).join(' ')}`)
      }
    }
    t.same(wrong, [])
  })
}
