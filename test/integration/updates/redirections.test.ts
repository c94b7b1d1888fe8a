import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import t from 'tap'
import { readText } from '../../../app/server/updates/net.ts'
import { makeSigner } from '../../support/bundles.ts'
import { listen } from '../../support/listen.ts'
import { scratchFolder } from '../../support/scratch.ts'

t.test('redirections', async (t) => {
  // Nobody vouches for the certificate of the test; it is the others' variable as well.
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  t.teardown(() => {
    delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
  })
  const { key, certificate } = makeSigner(scratchFolder(t, 'redirections'), 'site')
  const asked: string[] = []
  // `/to/ADDRESS` redirects there.
  const serve: RequestListener = (request, response) => {
    const url = request.url ?? ''
    asked.push(url)
    if (!url.startsWith('/to/')) response.end(`here: ${url}`)
    else response.writeHead(302, { location: decodeURIComponent(url.slice('/to/'.length)) }).end()
  }
  const plain = `http://127.0.0.1:${await listen(t, createServer(serve))}`
  const tls = { key: readFileSync(key), cert: readFileSync(certificate) }
  const secure = `https://127.0.0.1:${await listen(t, createSecureServer(tls, serve))}`
  const via = (first: string, ...rest: string[]): string => {
    const [next, ...others] = rest
    return next === undefined ? first : `${first}/to/${encodeURIComponent(via(next, ...others))}`
  }
  const read = async (url: string) => {
    asked.length = 0
    return readText(url, { maxBytes: 1000, patienceMs: 10_000 })
  }

  const end = `${secure}/index.json`
  t.same(await read(via(plain, secure, end)), { text: 'here: /index.json', from: end })
  t.match(await read(via(plain, '/further.json')), { text: 'here: /further.json', from: `${plain}/further.json` })

  const refused = (message: RegExp) => ({ code: 'SERVICE_UNAVAILABLE', message })
  await t.rejects(read(via(secure, plain, end)), refused(/redirects from HTTPS to HTTP/), 'also where it ends over HTTPS')
  t.equal(asked.length, 1, 'and nobody was asked over HTTP')
  const withPassword = plain.replace('//', '//user:word@')
  await t.rejects(read(via(plain, `${withPassword}/index.json`)), refused(/password/))
  await t.rejects(read(via(plain, 'ftp://127.0.0.1/index.json')), refused(/no address/))
  await t.rejects(read(via(plain, ...Array<string>(7).fill(plain), end)), refused(/more than 5 times/))
  t.equal(asked.length, 6)
})
