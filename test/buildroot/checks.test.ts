import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import t from 'tap'

const ROOT = resolve(import.meta.dirname, '../..')
const CHECK = join(ROOT, 'scripts/buildroot/check_config.py')
const CONFIGS = join(ROOT, 'buildroot-external/configs')

interface Outcome {
  readonly code: number
  readonly out: string
}

function python(...args: string[]): Promise<Outcome> {
  return new Promise((done) => {
    execFile('python3', args, { timeout: 30_000 }, (error, out) => done({ code: error ? Number(error.code) : 0, out }))
  })
}

async function scratch(test: Pick<typeof t, 'teardown'>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'buildroot-'))
  test.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

t.test('a board that differs in what is common is named', async (t) => {
  const folder = await scratch(t)
  const files = (await readdir(CONFIGS)).map((name) => join(CONFIGS, name))
  t.equal((await python(CHECK, 'common', ...files)).code, 0)

  const other = join(folder, 'other_defconfig')
  const first = await readFile(files[0] as string, 'utf8')
  await writeFile(other, first.replace('BR2_PACKAGE_NFTABLES=y\n', ''))
  const outcome = await python(CHECK, 'common', ...files, other)
  t.equal(outcome.code, 1)
  t.match(outcome.out, 'other_defconfig: not the same as in the others: BR2_PACKAGE_NFTABLES=y')
})

t.test('a lost symbol and one of an older Buildroot are found in what was loaded', async (t) => {
  const folder = await scratch(t)
  const config = join(folder, 'config')
  const asked = join(folder, 'asked')
  await writeFile(asked, 'BR2_ONE=y\nBR2_TWO="x"\n# BR2_OFF is not set\n')

  await writeFile(config, 'BR2_ONE=y\nBR2_TWO="x"\n')
  t.equal((await python(CHECK, 'loaded', config, asked)).code, 0, 'what is off may be absent')
  await writeFile(config, '# BR2_ONE is not set\nBR2_TWO="y"\nBR2_OFF=y\nBR2_LEGACY=y\n')
  const { code, out } = await python(CHECK, 'loaded', config, asked)
  t.equal(code, 1)
  t.match(out, 'lost: BR2_ONE=y')
  t.match(out, 'lost: BR2_TWO="x"')
  t.match(out, 'lost: # BR2_OFF is not set')
  t.match(out, 'removed from Buildroot')
})

const INFO = {
  gone: { type: 'target', virtual: true, version: '1', downloads: [] },
  'host-tool': { type: 'host', name: 'tool', version: '2', downloads: [] },
  alpha: {
    type: 'target',
    name: 'alpha',
    version: '1.2',
    licenses: 'MIT',
    install_target: true,
    dependencies: ['beta', 'host-tool'],
    downloads: [{ source: 'alpha-1.2.tar.xz', uris: ['https+https://example.org/alpha'] }],
    hashes: ['alpha.hash'],
  },
  beta: {
    type: 'target',
    name: 'beta',
    version: '0.1',
    dependencies: [],
    downloads: [{ source: 'beta-0.1.tar.gz', uris: ['local+/somewhere'] }],
    hashes: [],
  },
}

t.test('a download without a hash is found; local sources need none', async (t) => {
  const folder = await scratch(t)
  const info = join(folder, 'info.json')
  await writeFile(info, JSON.stringify(INFO))
  await writeFile(join(folder, 'alpha.hash'), `# locally\nsha256  ${'0'.repeat(64)}  alpha-1.2.tar.xz\n`)
  t.equal((await python(CHECK, 'hashes', info, folder)).code, 0)
  await writeFile(join(folder, 'alpha.hash'), `sha256  ${'0'.repeat(64)}  alpha-1.1.tar.xz\n`)
  const { code, out } = await python(CHECK, 'hashes', info, folder)
  t.equal(code, 1)
  t.match(out, 'alpha: no hash of alpha-1.2.tar.xz')
  t.notMatch(out, 'beta')
})

t.test('the bill of materials has what is in the image, and only that', async (t) => {
  const folder = await scratch(t)
  const info = join(folder, 'info.json')
  const lock = join(folder, 'lock.json')
  await writeFile(info, JSON.stringify(INFO))
  const packages = {
    '': { name: 'top', version: '1' },
    'node_modules/@a/b': { version: '3.0.0', license: 'ISC' },
    'node_modules/tester': { version: '4.0.0', dev: true },
  }
  await writeFile(lock, JSON.stringify({ packages }))
  const run = () => python(join(ROOT, 'scripts/buildroot/sbom.py'), info, lock, 'camera-server-x', '1.0.0', '24.9.8')
  const { code, out } = await run()
  t.equal(code, 0)
  const bill = JSON.parse(out)
  t.match(bill, {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: { type: 'firmware', version: '1.0.0' } },
  })
  t.match(bill.serialNumber, /^urn:uuid:[0-9a-f-]{36}$/)
  t.same(
    bill.components.map((component: { purl: string }) => component.purl),
    ['pkg:generic/alpha@1.2', 'pkg:generic/beta@0.1', 'pkg:generic/nodejs@24.9.8', 'pkg:npm/%40a/b@3.0.0'],
  )
  t.same(bill.dependencies[1], { ref: 'buildroot/alpha', dependsOn: ['buildroot/beta'] })
  t.equal((await run()).out, out, 'the same again')

  await writeFile(join(folder, 'sbom.json'), out)
  const list = await python(join(ROOT, 'scripts/buildroot/licences.py'), join(folder, 'sbom.json'))
  t.match(list.out, 'buildroot,alpha,1.2,MIT')
  t.match(list.out, 'buildroot,beta,0.1,unknown')
})
