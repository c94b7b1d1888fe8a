import { request } from 'node:http'
import fc from 'fast-check'
import t from 'tap'
import { login } from '../../support/api.ts'
import { startQuickServer } from '../../support/server.ts'

/** Whatever the headers hold, as bytes on the wire. */
function statusOf(port: number, path: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', path, headers, agent: false }, (answer) => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode ?? 0))
    })
    sent.on('error', reject)
    sent.end()
  })
}

t.test('no Authorization header, cookie or token but the right one comes in, and none breaks the server', async (t) => {
  const server = await startQuickServer(t, { args: ['--rate-limits', 'off'] })
  const { token } = await login(server)
  const [head = '', body = '', signature = ''] = token.split('.')
  const none = Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url')
  const piece = fc.oneof(
    fc.constantFrom(
      'Bearer ',
      'Basic ',
      'Digest ',
      'bearer\t',
      'Negotiate ',
      head,
      body,
      signature,
      none,
      '.',
      '..',
      '=',
      ',',
      ';',
      '"',
      '\\',
    ),
    fc.constantFrom(
      'username="admin"',
      'realm="camera"',
      'qop=auth',
      'nc=00000001',
      'algorithm=MD5',
      'response="',
      'nonce="',
      '%00',
      '%',
    ),
    fc.base64String({ maxLength: 60 }),
    fc.string({ maxLength: 12 }),
  )
  const text = fc
    .array(piece, { maxLength: 12 })
    .map((parts) =>
      parts
        .join('')
        .replace(/[^\x20-\x7e]/g, '')
        .trim(),
    )
    .filter((made) => !made.includes(token))
  const place = fc.constantFrom('authorization', 'bearer', 'basic', 'digest', 'cookie', 'query')
  let count = 0
  await fc.assert(
    fc.asyncProperty(text, place, async (value, where) => {
      const schemes: Record<string, string> = { bearer: 'Bearer ', basic: 'Basic ', digest: 'Digest ', authorization: '' }
      const headers: Record<string, string> = where === 'cookie' ? { cookie: `camera_session=${value}` } : {}
      if (where in schemes) headers.authorization = schemes[where] + value
      const query = where === 'query' ? `?token=${encodeURIComponent(value)}` : ''
      const status = await statusOf(server.ports.http, `/api/status${query}`, headers)
      count += 1
      // 400: a query that is no query; 403: locked after five failures; 431: too much of it.
      if (![400, 401, 403, 431].includes(status)) throw new Error(`${status} for ${where}: ${JSON.stringify(value)}`)
    }),
    { numRuns: 1500 },
  )
  t.ok(count >= 1500)
  t.equal(await statusOf(server.ports.http, '/api/status', { authorization: `Bearer ${token}` }), 200, 'the right one does')
  t.notMatch(server.log.join('\n'), /request failed/)
})
