import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t from 'tap'
import { loadThroughFile, unpackFolders } from '../../../app/server/platform/embedded-addons.ts'

const BYTES = Buffer.from('an addon')

t.test('an addon is a private file while it is loaded, and gone afterwards', async (t) => {
  const folder = t.testdir()
  let file = ''
  const loaded = loadThroughFile('uws.node', BYTES, [folder], (path) => {
    file = path
    t.equal(readFileSync(path, 'utf8'), 'an addon')
    t.equal(statSync(path).mode & 0o777, 0o500)
    t.equal(statSync(dirname(path)).mode & 0o777, 0o700)
    return 'loaded'
  })
  t.equal(loaded, 'loaded')
  t.match(file, /\/uws\.node$/)
  t.same(readdirSync(folder), [])
})

t.test('a place that is missing or forbids to execute is passed over', async (t) => {
  const folder = t.testdir()
  const [noexec, good] = [join(folder, 'noexec'), join(folder, 'good')]
  for (const made of [noexec, good]) mkdirSync(made)
  const load = (path: string) => {
    if (path.startsWith(noexec)) throw new Error('failed to map segment from shared object')
    return path
  }
  const file = String(loadThroughFile('lmdb.node', BYTES, [join(folder, 'absent'), noexec, good], load))
  t.ok(file.startsWith(good))
  t.notOk(existsSync(file))
  t.same([readdirSync(noexec), readdirSync(good)], [[], []])
})

t.test('where no place will do, the error tells of each', async (t) => {
  const folder = t.testdir()
  const load = () => {
    throw new Error('GLIBC_2.38 not found')
  }
  t.throws(() => loadThroughFile('uws.node', BYTES, [join(folder, 'absent'), folder], load), {
    message: /the addon uws\.node does not load \(.*absent: .*ENOENT.*; .*: GLIBC_2\.38 not found\)/,
  })
})

t.test('the runtime directory of the service comes first', async (t) => {
  t.same(unpackFolders({ RUNTIME_DIRECTORY: '/run/camera:/run/other' }), ['/run/camera', '/dev/shm', tmpdir()])
  t.same(unpackFolders({}), ['/dev/shm', tmpdir()])
})
