import { readdirSync, readFileSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { login } from '../../support/api.ts'
import { startServer } from '../../support/server.ts'
import { otherKey, pem, served } from './pem.ts'

const PATH = '/api/system/certificate'

t.test('the first certificate is signed by itself, names the machine, and survives a restart', async (t) => {
  const server = await startServer(t)
  const { body, status } = await (await login(server)).get(PATH)
  t.equal(status, 200)
  t.match(body, { self_signed: true, subject: `CN=${hostname()}` })
  const names = body.subject_alt_names as unknown as string[]
  for (const name of [hostname(), `${hostname()}.local`, 'localhost']) t.ok(names.includes(`DNS:${name}`), name)
  t.ok(names.includes('IP:127.0.0.1'))
  t.ok(Date.parse(String(body.valid_from)) < Date.now() && Date.parse(String(body.valid_to)) > Date.now() + 3e11)
  t.equal(await served(server.ports.https), String(body.fingerprint_sha256))
  await server.stop()
  const again = await startServer(t, { dataDir: server.dataDir })
  t.equal(await served(again.ports.https), String(body.fingerprint_sha256))
})

t.test('an own certificate: taken, served at once, kept; the key stays secret', async (t) => {
  const server = await startServer(t, { args: ['--log-level', 'trace'] })
  const api = await login(server)
  const before = await served(server.ports.https)
  const own = await pem()
  const put = await api.put(PATH, own)
  t.equal(put.status, 200)
  t.match(put.body, { self_signed: true, subject: 'CN=own.example', subject_alt_names: ['DNS:own.example', 'IP:192.0.2.7'] })
  t.equal(await served(server.ports.https), String(put.body.fingerprint_sha256))
  t.not(String(put.body.fingerprint_sha256), before)

  const folder = join(server.dataDir, 'tls')
  t.strictSame(readdirSync(folder), ['server.pem'])
  t.equal(statSync(join(folder, 'server.pem')).mode & 0o777, 0o600)
  const secret = own.private_key.split('\n')[1] ?? ''
  t.ok(readFileSync(join(folder, 'server.pem'), 'utf8').includes(secret))
  t.notOk(JSON.stringify((await api.get(PATH)).body).includes(secret))
  t.notOk(server.log.join('\n').includes(secret))
  t.ok(server.log.some((line) => line.includes(String(put.body.fingerprint_sha256))))

  await server.kill()
  const again = await startServer(t, { dataDir: server.dataDir })
  t.equal(await served(again.ports.https), String(put.body.fingerprint_sha256))
  const renewed = await (await login(again)).delete(PATH)
  t.match(renewed.body, { self_signed: true, subject: `CN=${hostname()}` })
  t.equal(await served(again.ports.https), String(renewed.body.fingerprint_sha256))
})

t.test('what cannot be used is refused, named, and changes nothing', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const before = await served(server.ports.https)
  const own = await pem()
  const other = await pem('other.example')
  const cases: [string, { certificate?: string; private_key?: string }, string, RegExp][] = [
    ['no PEM', { ...own, certificate: 'hello' }, 'body.certificate', /PEM/],
    ['broken', { ...own, certificate: own.certificate.replace(/MII.{40}/, 'AAAA') }, 'body.certificate', /read/],
    ['no key', { ...own, private_key: own.certificate }, 'body.private_key', /PEM/],
    ['another key', { ...own, private_key: otherKey() }, 'body.private_key', /belong/],
    ['expired', await pem('x', { from: -30, to: -1 }), 'body.certificate', /Expired/],
    ['not yet', await pem('x', { from: 1, to: 30 }), 'body.certificate', /Not valid before/],
    ['weak', await pem('x', { bits: 1024 }), 'body.certificate', /2048.*1024/],
    ['no chain', { ...own, certificate: own.certificate + other.certificate }, 'body.certificate', /followed by/],
    ['missing', { certificate: own.certificate }, 'body.private_key', /required/],
    ['unknown', { ...own, extra: 1 } as never, 'body.extra', /not known/],
  ]
  for (const [name, body, field, why] of cases) {
    const answer = await api.put(PATH, body)
    t.equal(answer.status, 400, name)
    t.match(answer.body, { error: { code: 'INVALID_REQUEST', details: field, message: why } }, name)
  }
  t.equal(await served(server.ports.https), before)
  for (const good of [await pem('rsa', { bits: 2048 }), await pem('p384', { curve: 'P-384' })]) {
    const { body } = await api.put(PATH, good)
    t.equal(await served(server.ports.https), String(body.fingerprint_sha256))
  }
  t.equal((await fetch(`${server.base}${PATH}`)).status, 401)
})
