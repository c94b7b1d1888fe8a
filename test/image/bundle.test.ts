/** Keys and update bundles, without a machine: what the scripts make is what RAUC accepts, and a release refuses keys of development. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
const script = (name: string) => join(ROOT, 'scripts/image', name)

interface Failure {
  code: number
  stderr: string
}

async function failure(started: Promise<unknown>): Promise<Failure> {
  return started.then(
    () => Promise.reject(new Error('it succeeded')),
    (error: unknown) => error as Failure,
  )
}

async function keys(folder: string, ...options: string[]): Promise<{ ca: string; sign: string[] }> {
  await run(script('keys.sh'), [...options, folder])
  return {
    ca: join(folder, 'ca.cert.pem'),
    sign: ['--cert', join(folder, 'signing.cert.pem'), '--key', join(folder, 'signing.key.pem')],
  }
}

function smallTree(folder: string): string {
  mkdirSync(join(folder, 'tree/etc'), { recursive: true })
  writeFileSync(join(folder, 'tree/etc/camera-release'), 'VERSION=1.0.0\nBOARD=reference-x86_64\n')
  return join(folder, 'tree')
}

t.test('a bundle carries its version inside and out, and only its own authority vouches for it', async (t) => {
  const folder = t.testdir()
  const tree = smallTree(folder)
  const ours = await keys(join(folder, 'ours'))
  const theirs = await keys(join(folder, 'theirs'))
  const bundle = join(folder, 'next.raucb')
  await run(script('bundle.sh'), ['--root', tree, '--version', '2.3.4', '--out', bundle, ...ours.sign, '--fast'])

  const { stdout } = await run('rauc', ['info', '--keyring', ours.ca, '--output-format=json', bundle])
  const info = JSON.parse(stdout) as { compatible: string; version: string; format?: string }
  t.match(info, { compatible: 'camera-server-reference-x86_64', version: '2.3.4' })
  t.match((await failure(run('rauc', ['info', '--keyring', theirs.ca, bundle]))).stderr, /signature verification failed/i)

  await run('rauc', ['extract', '--keyring', ours.ca, bundle, join(folder, 'content')])
  await run('unsquashfs', ['-quiet', '-no-progress', '-dest', join(folder, 'root'), join(folder, 'content/rootfs.squashfs')])
  t.equal(readFileSync(join(folder, 'root/etc/camera-release'), 'utf8'), 'VERSION=2.3.4\nBOARD=reference-x86_64\n')
  t.match(readFileSync(join(tree, 'etc/camera-release'), 'utf8'), /VERSION=1\.0\.0/, 'the tree is left alone')
})

t.test('a bundle that cannot be made leaves nothing behind', async (t) => {
  const folder = t.testdir({ empty: {} })
  const out = join(folder, 'out/next.raucb')
  const { sign } = await keys(join(folder, 'keys'))
  for (const source of [['--root', join(folder, 'empty')], ['--squashfs', join(folder, 'missing')], []])
    t.ok((await failure(run(script('bundle.sh'), [...source, '--version', '1.0.0', '--out', out, ...sign]))).code > 0)
  const wrong = ['--root', smallTree(folder), '--version', '1.0.0;reboot', '--out', out, ...sign]
  t.match(await failure(run(script('bundle.sh'), wrong)), { code: 2, stderr: /not a version/ })
  t.notOk(existsSync(join(folder, 'out')))
})

t.test('keys are private, are not made twice, and those of development make no release', async (t) => {
  const folder = join(t.testdir(), 'keys')
  const { ca } = await keys(folder)
  const before = readFileSync(ca, 'utf8')
  t.equal(statSync(join(folder, 'signing.key.pem')).mode & 0o077, 0)
  await keys(folder)
  t.equal(readFileSync(ca, 'utf8'), before)
  const env = { ...process.env, CHANNEL: 'release', KEYS: folder }
  t.match(await failure(run(script('reference.sh'), [], { env })), { stderr: /not signed with a development key/ })
})

t.test('keys for releases carry the name that was given', async (t) => {
  const { ca } = await keys(join(t.testdir(), 'keys'), '--release', 'Example Cameras')
  const { stdout } = await run('openssl', ['x509', '-in', ca, '-noout', '-subject'])
  t.match(stdout, /Example Cameras/)
  t.notMatch(stdout, /development/)
})
