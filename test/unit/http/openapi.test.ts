import { Type } from '@sinclair/typebox'
import t from 'tap'
import { SESSION_COOKIE } from '../../../app/server/caller.ts'
import { openApiDocument } from '../../../app/server/http/openapi.ts'
import { toOpenApi } from '../../../app/server/http/openapi-schema.ts'
import { tableRoute } from './table.ts'

t.test('schemas in the dialect of OpenAPI 3.0', async (t) => {
  t.strictSame(toOpenApi(Type.Union([Type.Literal('a'), Type.Literal('b')])), { type: 'string', enum: ['a', 'b'] })
  t.strictSame(toOpenApi(Type.Union([Type.Literal(1), Type.Literal(2), Type.Null()])), {
    type: 'integer',
    enum: [1, 2, null],
    nullable: true,
  })
  t.strictSame(toOpenApi(Type.Union([Type.Number({ minimum: 0 }), Type.Null()])), { type: 'number', minimum: 0, nullable: true })
  t.strictSame(toOpenApi(Type.Record(Type.String(), Type.Integer())), {
    type: 'object',
    additionalProperties: { type: 'integer' },
  })
  t.strictSame(toOpenApi(Type.Number({ exclusiveMinimum: 0 })), { type: 'number', minimum: 0, exclusiveMinimum: true })
  t.strictSame(toOpenApi(Type.Unknown()), {})
  t.strictSame(toOpenApi(Type.Array(Type.String())), { type: 'array', items: { type: 'string' } })
  const withDefault = Type.Object({ a: Type.Integer({ default: 1 }), b: Type.String() })
  t.strictSame(toOpenApi(withDefault, 'input').required, ['b'])
  t.strictSame(toOpenApi(withDefault).required, ['a', 'b'])
})

const routes = [
  tableRoute('GET', '/image', {
    response: { binary: 'image/jpeg' },
    query: Type.Object({ quality: Type.Integer({ default: 85 }) }),
  }),
  tableRoute('POST', '/api/users', { access: 'admin', errors: ['CONFLICT'], body: Type.Object({ name: Type.String() }) }),
  tableRoute('PUT', '/api/v1/users/{id}', { params: Type.Object({ id: Type.Integer() }) }),
  tableRoute('GET', '/api/users/{name}'),
  tableRoute('POST', '/api/login', { access: 'public' }),
  tableRoute('GET', '/files/{filepath+}', { response: { binary: 'video/mp4', file: true } }),
]

t.test('the document of a table', async (t) => {
  const document = JSON.parse(JSON.stringify(openApiDocument(routes, { version: '1.2.3' })))
  t.match(document, { openapi: '3.0.3', info: { version: '1.2.3' } })
  t.strictSame(Object.keys(document.paths).sort(), [
    '/api/login',
    '/api/users',
    '/api/users/{name}',
    '/api/v1/login',
    '/api/v1/users',
    '/api/v1/users/{id}',
    '/files/{filepath}',
    '/image',
  ])
  t.equal(document.components.securitySchemes.cookie.name, SESSION_COOKIE)
  const create = document.paths['/api/users'].post
  t.equal(create['x-role'], 'admin')
  t.equal(create.responses['409'].description, 'CONFLICT')
  t.equal(create.requestBody.required, true)
  t.match(document.paths['/api/v1/users'].post.responses['200'].content['application/json'].schema, {
    required: ['status', 'data', 'timestamp'],
  })
  t.strictSame(document.paths['/api/login'].post.security, [])
  t.notOk(document.paths['/api/login'].post.responses['401'])
  t.match(document.paths['/image'].get.parameters, [{ name: 'quality', in: 'query', required: false, schema: { default: 85 } }])
  t.ok(document.paths['/image'].get.responses['200'].content['image/jpeg'])
  t.strictSame(
    document.paths['/api/v1/users/{id}'].get.parameters.map((parameter: { name: string }) => parameter.name),
    ['id'],
    'one name for one place',
  )
  const file = document.paths['/files/{filepath}'].get
  t.equal(file.parameters[0].name, 'filepath')
  t.strictSame(file.responses['206'].content, file.responses['200'].content)
  t.ok(file.responses['206'].headers['Content-Range'])
  t.notOk(file.responses['304'].content)
  t.match(file.responses['503'].description, 'SERVICE_UNAVAILABLE')
  t.notOk(document.paths['/image'].get.responses['206'], 'what comes from memory has no ranges')
})

t.test('operation ids are unique, references lead somewhere, no foreign keyword is left', async (t) => {
  const text = JSON.stringify(openApiDocument(routes, { version: '1' }))
  const ids = [...text.matchAll(/"operationId":"([^"]+)"/g)].map(([, id]) => id)
  t.equal(new Set(ids).size, ids.length)
  const document = JSON.parse(text)
  for (const [, name = ''] of text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g))
    t.ok(document.components.schemas[name], name)
  t.notMatch(text, /"(const|patternProperties|\$id|examples)":/)
  t.notMatch(text, /"type":"null"/)
})
