import fc from 'fast-check'
import t from 'tap'
import { parseBasic, parseBearer, sessionCookie } from '../../../app/server/auth/credentials.ts'
import { digestResponse, meansTarget, Nonces, parseDigest } from '../../../app/server/auth/digest.ts'
import { digestHash } from '../../../app/server/auth/ha1.ts'

const MINUTES = 60_000

t.test('the example of RFC 7616, 3.9.1', (t) => {
  const secret = (algorithm: 'MD5' | 'SHA-256') => digestHash(algorithm, 'Mufasa:http-auth@example.org:Circle of Life')
  const request = {
    uri: '/dir/index.html',
    nonce: '7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v',
    nc: '00000001',
    cnonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
  }
  const of = (algorithm: 'MD5' | 'SHA-256') => digestResponse(secret(algorithm), 'GET', { algorithm, ...request })
  t.equal(of('MD5'), '8ca523f5e9506fed4657c9700eebdbec')
  t.equal(of('SHA-256'), '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1')
  t.end()
})

const HEADER =
  'Digest username="jo", realm="camera", nonce="n", uri="/a?b=1,2", qop=auth, nc=00000001, cnonce="c", algorithm=SHA-256, ' +
  `response="${'ab'.repeat(32)}", opaque="x"`

t.test('headers: what is accepted, and what is not ours', (t) => {
  t.match(parseDigest(HEADER), { username: 'jo', uri: '/a?b=1,2', algorithm: 'SHA-256', nc: '00000001' })
  t.match(parseDigest(HEADER.replace('"jo"', '"j\\"o"')), { username: 'j"o' })
  t.match(parseDigest(HEADER.replace('username="jo"', "username*=UTF-8''j%C3%B6")), { username: 'jö' })
  t.match(parseDigest(HEADER.replace('algorithm=SHA-256, ', '')), { algorithm: 'MD5' })
  for (const [from, to] of [
    ['realm="camera"', 'realm="other"'],
    ['qop=auth', 'qop=auth-int'],
    ['qop=auth, ', ''],
    ['SHA-256', 'SHA-512-256'],
    ['nc=00000001', 'nc=1'],
    ['nc=00000001', 'nc=00000000'],
    ['cnonce="c"', 'cnonce=""'],
    ['response="', 'response="zz'],
    ['opaque="x"', 'username="eve"'],
    ['opaque="x"', 'userhash=true'],
    ['opaque="x"', 'opaque="x'],
    ['username="jo"', "username*=UTF-8''%zz"],
  ] as const) {
    t.equal(parseDigest(HEADER.replace(from, to)), null, to)
  }
  t.ok(meansTarget('/a?b', '/a?b'))
  t.ok(meansTarget('http://cam:8080/a?b', '/a?b'))
  t.notOk(meansTarget('/a', '/a?b'))
  t.notOk(meansTarget('http://cam/other', '/a'))
  t.end()
})

t.test('nonces: fresh once per count, in any order within the window; forged, old and forgotten ones are stale', (t) => {
  const clock = { now: 1_700_000_000_000 }
  const nonces = new Nonces(() => clock.now, 4)
  const hex = (count: number) => count.toString(16).padStart(8, '0')
  const nonce = nonces.issue()
  const uses: [number, string][] = [
    [1, 'fresh'],
    [1, 'stale'],
    [3, 'fresh'],
    [2, 'fresh'],
    [2, 'stale'],
    [200, 'fresh'],
    [136, 'stale'],
    [137, 'fresh'],
    [137, 'stale'],
    [4, 'stale'],
  ]
  for (const [count, expected] of uses) t.equal(nonces.take(nonce, hex(count)), expected, `count ${count}`)
  const other = new Nonces(() => clock.now)
  t.equal(nonces.take(other.issue(), hex(1)), 'stale', 'of another server')
  const altered = nonce.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))
  t.equal(nonces.take(altered, hex(201)), 'stale')
  const aged = nonces.issue()
  clock.now += 5 * MINUTES + 1
  t.equal(nonces.take(aged, hex(1)), 'stale')

  const first = nonces.issue()
  t.equal(nonces.take(first, hex(1)), 'fresh')
  for (let i = 0; i < 20; i++) {
    clock.now += 1
    t.equal(nonces.take(nonces.issue(), hex(1)), 'fresh')
  }
  t.ok(nonces.remembered <= 4)
  t.equal(nonces.take(first, hex(1)), 'stale', 'a forgotten nonce is not used a second time')
  t.end()
})

t.test('no text makes the parsers throw', (t) => {
  const piece = fc.constantFrom(
    'Digest ',
    'Basic ',
    'Bearer ',
    'camera_session=',
    'username',
    '*',
    '=',
    '"',
    '\\',
    ',',
    ';',
    'nc',
    '%',
    ' ',
  )
  const text = fc
    .array(fc.oneof(piece, fc.string({ unit: 'binary', maxLength: 8 })), { maxLength: 40 })
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(text, (input) => {
      for (const parse of [parseDigest, parseBasic, parseBearer, sessionCookie]) parse(input)
      parseDigest(`Digest ${input}`)
      parseDigest(HEADER + input)
    }),
    { numRuns: 2000 },
  )
  t.end()
})
