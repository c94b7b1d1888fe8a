import t from 'tap'
import { serve } from './harness.ts'

t.test('answers in both forms', async (t) => {
  const { client } = await serve(t)
  const bare = await client.json('/api/status')
  t.strictSame(bare.body, { ok: true })
  t.equal(bare.headers.get('content-type'), 'application/json; charset=utf-8')
  t.equal(bare.headers.get('cache-control'), 'no-store')
  t.equal(bare.headers.get('x-content-type-options'), 'nosniff')
  t.equal(bare.headers.get('uwebsockets'), null)
  const envelope = await client.json('/api/v1/status')
  t.match(envelope.body, { status: 'success', data: { ok: true }, timestamp: Number })
  t.strictSame((await client.json('/api/go', { method: 'POST' })).body, { success: true })
  t.strictSame(
    (await client.json('/api/go', { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } })).status,
    200,
  )
})

t.test('errors in both forms', async (t) => {
  const { client } = await serve(t)
  const cases: [string, string | null, number, string][] = [
    ['busy', 'admin', 503, 'CAMERA_NOT_CONNECTED'],
    ['status', null, 401, 'INVALID_CREDENTIALS'],
    ['status', 'wrong', 401, 'INVALID_CREDENTIALS'],
    ['status', 'late-wrong', 401, 'INVALID_CREDENTIALS'],
    ['status', 'guest', 403, 'PERMISSION_DENIED'],
    ['admin', 'late-operator', 403, 'PERMISSION_DENIED'],
    ['status', 'fresh', 403, 'PASSWORD_CHANGE_REQUIRED'],
    ['status?x=1', 'admin', 400, 'INVALID_REQUEST'],
    ['nothing', null, 404, 'NOT_FOUND'],
    ['things/%zz', null, 400, 'INVALID_REQUEST'],
    ['broken', 'admin', 500, 'INTERNAL_ERROR'],
  ]
  for (const [path, as, status, code] of cases) {
    const bare = await client.json(`/api/${path}`, { as })
    t.equal(bare.status, status, path)
    t.match(bare.body, { error: { code, message: String, details: String, timestamp: /^\d{4}-\d\d-\d\dT.*Z$/ } })
    t.strictSame(Object.keys(bare.body), ['error'])
    const envelope = await client.json(`/api/v1/${path}`, { as })
    t.equal(envelope.status, status)
    t.match(envelope.body, { status: 'error', error: { code, timestamp: Number }, timestamp: Number })
    if (status === 401) t.equal(bare.headers.get('www-authenticate'), 'Basic realm="camera", charset="UTF-8"')
  }
  const broken = await client.fetch('/api/broken')
  t.notMatch(await broken.text(), /secret|at /)
})

t.test('public operations and the password gate', async (t) => {
  const { client } = await serve(t)
  for (const [as, caller] of [
    [null, null],
    ['wrong', null],
    ['late-wrong', null],
    ['viewer', 'viewer'],
    ['fresh', 'fresh'],
  ] as const) {
    t.strictSame((await client.json('/api/open', { as })).body, { caller })
  }
  t.equal((await client.json('/api/health', { as: 'fresh' })).status, 200)
  t.equal((await client.json('/api/status?token=viewer', { as: null })).status, 200)
})

t.test('HEAD, OPTIONS, 405', async (t) => {
  const { client } = await serve(t)
  for (const path of ['/api/status', '/image', '/api/large', '/api/docs']) {
    const headers = { 'accept-encoding': 'identity' }
    const get = await client.fetch(path, { headers })
    const { length } = Buffer.from(await get.arrayBuffer())
    const head = await client.fetch(path, { method: 'HEAD', headers })
    t.equal(head.status, 200)
    t.equal(head.headers.get('content-length'), String(length), path)
    t.equal(head.headers.get('content-type'), get.headers.get('content-type'))
    t.equal(await head.text(), '')
  }
  const options = await client.fetch('/api/things/1', { method: 'OPTIONS', as: null, headers: { origin: 'http://other' } })
  t.equal(options.status, 204)
  t.equal(options.headers.get('allow'), 'PUT, OPTIONS')
  t.equal(options.headers.get('access-control-allow-origin'), null)
  t.equal((await client.fetch('/api/nothing', { method: 'OPTIONS' })).status, 404)
  for (const [method, path, allow] of [
    ['GET', '/api/things/1', 'PUT, OPTIONS'],
    ['DELETE', '/api/v1/status', 'GET, HEAD, OPTIONS'],
    ['POST', '/api/docs', 'GET, HEAD, OPTIONS'],
  ] as const) {
    const wrong = await client.json(path, { method })
    t.equal(wrong.status, 405)
    t.equal(wrong.headers.get('allow'), allow)
    t.match(wrong.body, { error: { code: 'METHOD_NOT_ALLOWED' } })
  }
})

t.test('CORS for configured origins only', async (t) => {
  const { client } = await serve(t, { policy: { corsOrigins: ['http://nvr.local'] } })
  const preflight = await client.fetch('/api/things/1', { method: 'OPTIONS', as: null, headers: { origin: 'http://nvr.local' } })
  t.equal(preflight.status, 204)
  t.equal(preflight.headers.get('access-control-allow-origin'), 'http://nvr.local')
  t.equal(preflight.headers.get('access-control-allow-methods'), 'PUT, OPTIONS')
  t.match(preflight.headers.get('access-control-allow-headers'), /Authorization/)
  const large = await client.fetch('/api/large', { headers: { origin: 'http://nvr.local', 'accept-encoding': 'gzip' } })
  t.equal(large.headers.get('vary'), 'Origin, Accept-Encoding')
  const other = await client.fetch('/api/status', { headers: { origin: 'http://evil' } })
  t.equal(other.headers.get('access-control-allow-origin'), null)
  t.equal(other.headers.get('vary'), 'Origin')
  await other.text()
})

t.test('bodies are validated', async (t) => {
  const { client } = await serve(t)
  const good = await client.put('/api/things/7?dry=true', '{"fps":30}')
  t.strictSame(good.body, { id: 7, dry: true, fps: 30 })
  t.strictSame((await client.put('/api/things/7', '{"fps":30}', {}, 'late-admin')).body, { id: 7, fps: 30 })
  const bad: [string, string, string][] = [
    ['/api/things/7', '{"fps":', 'body'],
    ['/api/things/7', '', 'body'],
    ['/api/things/7', '{"fps":"30"}', 'body.fps'],
    ['/api/things/7', '{"fps":30,"x":1}', 'body.x'],
    ['/api/things/7', '{"fps":30,"__proto__":{}}', 'body.__proto__'],
    ['/api/things/x', '{"fps":30}', 'params.id'],
    ['/api/things/7?dry=maybe', '{"fps":30}', 'query.dry'],
    ['/api/things/7?dry=1&dry=1', '{"fps":30}', 'query.dry'],
    ['/api/things/7?nope=1', '{"fps":30}', 'query.nope'],
  ]
  for (const [path, body, details] of bad) {
    const answer = await client.put(path, body)
    t.equal(answer.status, 400)
    t.match(answer.body, { error: { code: 'INVALID_REQUEST', details } }, `${path} ${body}`)
  }
  t.match((await client.put('/api/things/7', '{"fps":30}', { 'content-type': 'text/plain' })).body, {
    error: { details: 'content-type' },
  })
})

t.test('compression of larger JSON', async (t) => {
  const { client } = await serve(t)
  const zipped = await client.fetch('/api/v1/large', { headers: { 'accept-encoding': 'gzip' } })
  t.equal(zipped.headers.get('content-encoding'), 'gzip')
  t.ok(Number(zipped.headers.get('content-length')) < 2000)
  t.match(await zipped.json(), { status: 'success', data: { text: /^camera camera/ } })
  const plain = await client.fetch('/api/large', { headers: { 'accept-encoding': 'identity' } })
  t.equal(plain.headers.get('content-encoding'), null)
  t.equal(plain.headers.get('vary'), 'Accept-Encoding')
  t.ok((await plain.text()).length > 30_000)
})

t.test('path tricks, floods and garbage get an error and leave the server alive', async (t) => {
  const { client } = await serve(t)
  for (const target of [
    '//api/status',
    '/api/../status',
    '/api/%2e%2e/x',
    '/files/a\\..\\b',
    '/files/%5c',
    '/api/%00',
    '/api/%',
  ]) {
    const answer = await client.raw(`GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    t.match(answer, /^HTTP\/1\.1 400 .*"INVALID_REQUEST"/s, target)
  }
  const long = await client.raw(`GET /${'a'.repeat(9000)} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
  t.match(long, /^HTTP\/1\.1 404 /)
  for (const garbage of [
    'GARBAGE\r\n\r\n',
    'POST /api/go HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n',
    'GET /api/\xff HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n',
  ]) {
    t.match(await client.raw(garbage), /^HTTP\/1\.1 (400|505) |^$/, JSON.stringify(garbage))
  }
  t.equal((await client.fetch('/api/status')).status, 200)
})
