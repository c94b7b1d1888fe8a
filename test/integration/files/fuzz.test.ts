/**
 * Paths of every kind against a tree full of traps. Whatever is asked: no byte from outside is answered, no name from outside, and nothing
 * outside is changed; nor does a named pipe or a device hold anything up.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { PATIENCE_MS } from '../../support/api.ts'
import { FORM_TYPE, form, serveFiles } from './harness.ts'

const CANARY = 'canary-of-the-outside'
const RUNS = Number(process.env.FUZZ_RUNS ?? 150)

function makeOutside(outside: string): void {
  mkdirSync(join(outside, 'sub'), { recursive: true })
  for (const name of ['secret-canary.txt', 'sub/secret-canary.mp4', 'a', 'b'])
    writeFileSync(join(outside, name), `${CANARY} ${name}`)
}

function makeInside(root: string, outside: string): void {
  mkdirSync(join(root, 'd/e/f'), { recursive: true })
  for (const name of [
    'a',
    'd/b.mp4',
    'd/e/c.txt',
    'd/e/f/x',
    'Ü',
    'e\u0301',
    '...',
    'sp ace',
    '%2e%2e',
    '-rf',
    `n${'o'.repeat(254)}`,
  ]) {
    writeFileSync(join(root, name), 'inside')
  }
  const links = {
    out: outside,
    'd/out': outside,
    'd/up': '../..',
    'd/secret': join(outside, 'secret-canary.txt'),
    passwd: '/etc/passwd',
    proc: '/proc/self/root',
    abs: '/',
    loop: 'loop',
    'd/round': '.',
    within: 'd/e',
    dangling: '/nowhere/at/all',
    'd/new': join(outside, 'not-yet'),
  }
  for (const [name, to] of Object.entries(links)) symlinkSync(to, join(root, name))
  execFileSync('mkfifo', [join(root, 'fifo'), join(root, 'd/fifo')])
  // Without the right to make devices there is one trap less.
  spawnSync('mknod', [join(root, 'zero'), 'c', '1', '5'])
  mkdirSync(join(root, 'closed'))
  chmodSync(join(root, 'closed'), 0)
}

/** Everything below a folder that a change would show in. */
function fingerprint(folder: string): string {
  const hash = createHash('sha256')
  for (const name of (readdirSync(folder, { recursive: true }) as string[]).sort()) {
    const stat = lstatSync(join(folder, name))
    hash.update(`${name} ${stat.mode} ${stat.ino} ${stat.size} ${stat.nlink} ${stat.mtimeMs}\n`)
    if (stat.isFile()) hash.update(readFileSync(join(folder, name)))
    if (stat.isSymbolicLink()) hash.update(readlinkSync(join(folder, name)))
  }
  return hash.digest('hex')
}

/** Half a letter cannot be sent. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString()
}

const piece = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom('a', 'd', 'e', 'f', 'x', 'b.mp4', 'out', 'up', 'secret', 'within', 'round', 'new', 'loop'),
  },
  {
    weight: 4,
    arbitrary: fc.constantFrom('..', '.', '', '...', '%2e%2e', '%2e.', '..%2f', '%2f', '%5c', '..%5c', '%00', '%252e%252e', '\\'),
  },
  {
    weight: 4,
    arbitrary: fc.constantFrom('abs', 'proc', 'passwd', 'dangling', 'fifo', 'zero', 'socket', 'closed', '.uploads', '.UPLOADS'),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      'etc',
      'passwd',
      'media',
      'data',
      'outside',
      'secret-canary.txt',
      'sub',
      'self',
      'fd',
      'root',
      'tmp',
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom('Ü', '%C3%9C', 'U%CC%88', '%c0%ae%c0%ae', '%ff', 'o'.repeat(255), 'o'.repeat(256), '%E2%80%AE'),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
)
const path = fc
  .tuple(
    fc.constantFrom('', '/', '//', '/media/data/', 'media/data/'),
    fc.array(piece, { minLength: 1, maxLength: 7 }),
    fc.constantFrom('', '/'),
  )
  .map(([start, pieces, end]) => start + pieces.join('/') + end)
/** As a client that does not normalise sends it. */
const onTheWire = path.map((text) => text.replace(/[\0-\x20\x7f-\uffff?#]/g, (letter) => encodeURIComponent(wellFormed(letter))))

t.test('no path leads out', { timeout: 280_000 }, async (t) => {
  const { client, root, scratch } = await serveFiles(t)
  const outside = join(scratch, 'outside')
  makeOutside(outside)
  const rebuild = () => {
    for (const name of readdirSync(root)) if (name !== '.uploads') execFileSync('rm', ['-rf', join(root, name)])
    makeInside(root, outside)
  }
  rebuild()
  const socket = createServer().listen(join(root, 'socket'))
  t.teardown(() => socket.close())
  const before = fingerprint(outside)

  /** The request line is exactly this: fetch would resolve the dots itself. */
  const raw = (method: string, target: string, body: Buffer = Buffer.alloc(0)): Promise<string> =>
    new Promise((resolve, reject) => {
      const connection = connect(client.port, '127.0.0.1')
      let answer = ''
      connection.setTimeout(PATIENCE_MS, () => connection.destroy(new Error(`${method} ${target}: no answer`)))
      connection.on('data', (data) => {
        answer += data.toString('latin1')
      })
      connection.on('error', reject).on('close', () => resolve(answer))
      const headers = `Host: a\r\nAuthorization: Bearer operator\r\nConnection: close\r\nContent-Type: ${FORM_TYPE}\r\nContent-Length: ${body.length}\r\n`
      connection.write(`${method} ${target} HTTP/1.1\r\n${headers}\r\n`)
      connection.write(body)
    })
  const check = (answer: string, asked: string) => {
    if (!/^HTTP\/1\.1 (200|400|403|404|409|414|431|304) /.test(answer)) throw new Error(`${asked}: ${answer.slice(0, 200)}`)
    // What was asked may be said back in an error; beyond that, nothing of the outside may be.
    for (const secret of [CANARY, 'root:x:', scratch, 'not-yet'])
      if (answer.includes(secret)) throw new Error(`${asked} tells ${secret}`)
    const body = answer.slice(answer.indexOf('\r\n\r\n') + 4)
    if (answer.startsWith('HTTP/1.1 200') && body.includes('secret-canary') && !asked.includes('secret-canary')) {
      throw new Error(`${asked} names the outside: ${body}`)
    }
  }

  await fc.assert(
    fc.asyncProperty(onTheWire, async (target) => {
      for (const prefix of ['/files/', '/download/']) check(await raw('GET', prefix + target), target)
      const query = encodeURIComponent(target)
      for (const asked of [
        `/files?path=${query}`,
        `/api/files?recursive=true&directory=${query}`,
        `/files?path=${target.replace(/[&#+]/g, '')}`,
      ]) {
        check(await raw('GET', asked), asked)
      }
      return true
    }),
    { numRuns: RUNS },
  )
  t.equal(fingerprint(outside), before, 'reading has changed nothing')

  await fc.assert(
    fc.asyncProperty(onTheWire, path, fc.oneof(path, piece), fc.boolean(), async (target, folder, name, recursive) => {
      check(await raw('DELETE', `/files/${target}${recursive ? '?recursive=true' : ''}`), target)
      const body = form([
        ['path', wellFormed(folder)],
        ['overwrite', String(recursive)],
        ['file', 'uploaded', wellFormed(name).replace(/["\r\n]/g, '_')],
      ])
      check(await raw('POST', '/upload', body), `${folder} ${name}`)
      if (fingerprint(outside) !== before)
        throw new Error(`DELETE ${target}, or upload to ${folder} / ${name}, changed the outside`)
      return true
    }),
    { numRuns: RUNS },
  )
  t.same(readdirSync(scratch).sort(), ['media', 'outside'])
  t.same(readdirSync(join(root, '.uploads')), [])
})
