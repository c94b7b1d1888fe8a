/** Updates from the index of a site, over real HTTP. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { join } from 'node:path'
import t from 'tap'
import { type Json, jobDone, until } from '../../support/api.ts'
import { makeBundle } from '../../support/bundles.ts'
import { listen } from '../../support/listen.ts'
import { PATH, startAppliance } from './harness.ts'

t.test('an index', async (t) => {
  const installed: Buffer[] = []
  const { api, folder, trusted, stranger, system, shelf } = await startAppliance(t, {
    install: ([path = ''], { say }) => {
      installed.push(readFileSync(path))
      say('progress 50 half')
      say('done')
    },
  })
  const pages = new Map<string, RequestListener>()
  const site = await listen(
    t,
    createServer((request, response) => {
      const page = pages.get(request.url ?? '')
      if (page) page(request, response)
      else response.writeHead(404).end()
    }),
  )
  const url = `http://127.0.0.1:${site}/index.json`
  const entries: Record<string, unknown>[] = []
  pages.set('/index.json', (_request, response) => void response.end(JSON.stringify({ updates: entries })))

  /** A bundle on the site, and its entry in the index. */
  const offer = (id: string, signer: typeof trusted, version: string, change: Record<string, unknown> = {}): Buffer => {
    const file = join(folder, `${id}.raucb`)
    makeBundle(file, signer, { version, bytes: 300_000 })
    const bytes = readFileSync(file)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const entry = { id, version, compatible: 'camera-server-test', url: `${id}.raucb`, sha256, size_bytes: bytes.length }
    entries.push({ ...entry, ...change })
    pages.set(`/${id}.raucb`, (_request, response) => void response.end(bytes))
    return bytes
  }
  const install = (update_id: string) => api.post(`${PATH}/install`, { update_id })
  const failed = async (id: string): Promise<Json> => {
    const started = await install(id)
    t.equal(started.status, 200, id)
    const job = await jobDone(api, started.body)
    t.equal(job.status, 'failed', id)
    t.same(readdirSync(shelf), [], 'nothing is left of it')
    return job.error as Json
  }

  await t.test('its address is checked', async (t) => {
    for (const index_url of ['file:///etc/passwd', 'updates.example', 'https://user:word@updates.example/', 7])
      t.match(await api.put(`${PATH}/config`, { index_url }), { status: 400, body: { error: { details: 'body.index_url' } } })
    t.match(await api.put(`${PATH}/config`, { index_url: url }), { status: 200, body: { index_url: url } })
  })

  const good = offer('good', trusted, '1.3.0', { notes: 'better', released: '2026-11-01' })
  offer('other', trusted, '1.3.0', { compatible: 'camera-server-other' })
  offer('older', trusted, '1.0.0')
  entries.push({ id: 'malformed' })

  await t.test('what it offers, and what speaks against it', async (t) => {
    const { body } = await api.get(`${PATH}/check`)
    t.match(body, { update_available: true, index: { url, error: null, ignored: 1 } })
    const of = (id: string) => (body.updates as unknown as Json[]).find((update) => String(update.id) === id)
    t.match(of('good'), {
      source: 'index',
      newer: true,
      valid: null,
      notes: 'better',
      released: '2026-11-01',
      size_bytes: good.length,
    })
    t.match(of('other'), { installable: false, reason: /camera-server-other/ })
    t.match(of('older'), { installable: false, reason: /older/ })
    t.notMatch(JSON.stringify(body), /\.raucb/, 'addresses are nobody’s business')
  })

  await t.test('refused before a byte is loaded', async (t) => {
    t.match(await install('other'), { status: 422, body: { error: { code: 'UNSUPPORTED_SETTING' } } })
    t.match(await install('older'), { status: 409 })
    t.match(await install('none'), { status: 404 })
    t.same(system.asked('install'), [])
  })

  await t.test('loaded, checked, installed, and gone', async (t) => {
    const started = await install('good')
    const job = await jobDone(api, started.body)
    t.match(job, { status: 'succeeded', result: { version: '1.3.0', backup: null, restarting: false } })
    t.ok(installed[0]?.equals(good))
    t.match(system.asked('install')[0], new RegExp(`^install ${shelf}/`))
    t.same(readdirSync(shelf), [])
    t.same(system.asked('reboot'), [])
  })

  await t.test('a bundle that is not what the index says', async (t) => {
    offer('sum', trusted, '1.3.0', { sha256: 'a'.repeat(64) })
    t.match(await failed('sum'), { code: 'INVALID_FORMAT', details: 'sha256' })
    offer('long', trusted, '1.3.0', { size_bytes: 1000 })
    t.match(await failed('long'), { code: 'INVALID_FORMAT', message: /larger/ })
    const bytes = offer('short', trusted, '1.3.0')
    pages.set('/short.raucb', (_request, response) => void response.end(bytes.subarray(0, 5000)))
    t.match(await failed('short'), { code: 'SERVICE_UNAVAILABLE', message: /5000 of/ })
    pages.delete('/short.raucb')
    t.match(await failed('short'), { code: 'SERVICE_UNAVAILABLE', message: /404/ })
    offer('stranger', stranger, '1.3.0')
    t.match(await failed('stranger'), { code: 'INVALID_FORMAT', message: /signature|certificate/ })
    offer('promise', trusted, '1.3.0')
    Object.assign(entries.at(-1) ?? {}, { version: '1.9.0' })
    t.match(await failed('promise'), { code: 'INVALID_FORMAT', message: /promises 1\.9\.0/ })
    offer('down', trusted, '1.0.0')
    Object.assign(entries.at(-1) ?? {}, { version: '1.8.0' })
    t.match(await failed('down'), { code: 'CONFLICT' }, 'what counts is what is signed')
    t.equal(system.asked('install').length, 1)
  })

  await t.test('cancelled in the middle of the load', async (t) => {
    const bytes = offer('slow', trusted, '1.3.0')
    let begun = false
    pages.set('/slow.raucb', (_request, response) => {
      response.write(bytes.subarray(0, 100_000))
      begun = true
    })
    const started = await install('slow')
    await until(
      () => begun && readdirSync(shelf).length,
      (files) => files === 1,
      'the load',
    )
    t.match(await api.delete(`/api/jobs/${started.body.job_id}`), { status: 200, body: { status: 'cancelled' } })
    t.same(readdirSync(shelf), [])
  })

  await t.test('one that cannot be had keeps nothing else from being shown', async (t) => {
    const why = async (page: RequestListener): Promise<unknown> => {
      pages.set('/index.json', page)
      const { status, body } = await api.get(`${PATH}/check`)
      t.match({ status, updates: body.updates, available: body.update_available }, { status: 200, updates: [], available: false })
      return body.index?.error
    }
    t.match(await why((_request, response) => void response.end('<html>')), /no JSON/)
    t.match(await why((_request, response) => void response.writeHead(500).end()), /status 500/)
    t.match(await why((_request, response) => void response.end('x'.repeat(300_000))), /larger than/)
    t.match(await why((request) => request.socket.destroy()), /did not deliver/)
    t.match(await install('good'), { status: 503, body: { error: { code: 'SERVICE_UNAVAILABLE' } } })
  })

  await t.test('over HTTPS only from whom the certificate names', async (t) => {
    const tls = { key: readFileSync(trusted.key), cert: readFileSync(trusted.certificate) }
    const page = JSON.stringify({ updates: entries })
    const port = await listen(
      t,
      createSecureServer(tls, (_request, response) => void response.end(page)),
    )
    await api.put(`${PATH}/config`, { index_url: `https://127.0.0.1:${port}/index.json` })
    const { index, updates } = (await api.get(`${PATH}/check`)).body
    t.match(index?.error, /certificate/)
    t.same(updates, [])
  })

  await t.test('none is asked any more', async (t) => {
    t.match(await api.put(`${PATH}/config`, {}), { status: 200, body: { index_url: null } })
    t.match((await api.get(`${PATH}/check`)).body, { index: null })
  })
})
