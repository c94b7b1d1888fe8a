/** The domain by itself: what a crash, a full disk or a broken file may leave. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import { Bus } from '../../../app/server/bus.ts'
import { Certificates } from '../../../app/server/tls/index.ts'
import { scratchFolder } from '../../support/scratch.ts'
import { pem } from './pem.ts'

async function started(path: string, now: () => number = Date.now): Promise<Certificates> {
  const certificates = new Certificates(path, new Bus(), pino({ level: 'silent' }), now)
  await certificates.start()
  return certificates
}

async function own(name = 'own.example') {
  const { certificate, private_key } = await pem(name)
  return { certificate, privateKey: private_key }
}

t.test('a user that cannot serve with it stops the change; those before it go back', async (t) => {
  const path = scratchFolder(t, 'tls')
  const certificates = await started(path)
  const { fingerprint_sha256 } = certificates.info
  const before = readFileSync(certificates.files.certFile, 'utf8')
  const given: string[] = []
  certificates.use(async ({ certFile }) => void given.push(readFileSync(certFile, 'utf8')))
  certificates.use(async () => {
    throw new Error('no')
  })
  await t.rejects(certificates.install(await own()), /no/)
  t.equal(given.length, 2)
  t.not(given[0], before)
  t.equal(given[1], before)
  t.equal(certificates.info.fingerprint_sha256, fingerprint_sha256)
  t.strictSame(readdirSync(path), ['server.pem'], 'nothing is left over')
  t.equal((await started(path)).info.fingerprint_sha256, fingerprint_sha256)
})

t.test('the file holds both or the ones before, whatever a crash has left beside it', async (t) => {
  const path = scratchFolder(t, 'tls')
  const { info } = await started(path)
  writeFileSync(join(path, 'server.pem.new'), 'half a k')
  const again = await started(path)
  t.equal(again.info.fingerprint_sha256, info.fingerprint_sha256)
  t.strictSame(readdirSync(path), ['server.pem'])
  t.equal(statSync(join(path, 'server.pem')).mode & 0o777, 0o600)
})

t.test('a broken file is put aside and a new certificate made', async (t) => {
  const [one, two] = [await own('one'), await own('two')]
  for (const content of ['', 'rubbish', one.certificate, one.certificate + two.privateKey]) {
    const path = scratchFolder(t, 'tls')
    writeFileSync(join(path, 'server.pem'), content)
    t.ok((await started(path)).info.self_signed)
    t.strictSame(readdirSync(path).sort(), ['server.pem', 'server.pem.bad'])
  }
})

t.test('one signed by itself is renewed at the start when it has expired', async (t) => {
  const path = scratchFolder(t, 'tls')
  const made = await started(path)
  const later = () => Date.parse(made.info.valid_to) + 1000
  const renewed = await started(path, later)
  t.not(renewed.info.fingerprint_sha256, made.info.fingerprint_sha256)
  t.ok(Date.parse(renewed.info.valid_to) > later())
})
