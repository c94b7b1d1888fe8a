import { Type } from '@sinclair/typebox'
import fc from 'fast-check'
import t from 'tap'
import { coerce } from '../../../app/server/http/coerce.ts'
import { isJsonType, parseJson } from '../../../app/server/http/json.ts'
import { Validator } from '../../../app/server/http/validation.ts'
import { refused, tableRoute } from './table.ts'

const query = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 1000, default: 100 }),
  recursive: Type.Optional(Type.Boolean()),
  scale: Type.Optional(Type.Number()),
  fps: Type.Optional(Type.Union([Type.Literal(15), Type.Literal(30)])),
  level: Type.Optional(Type.Union([Type.Literal('low'), Type.Literal('high')])),
  text: Type.Optional(Type.String()),
})
const body = Type.Object({
  fps: Type.Optional(Type.Integer({ minimum: 5, maximum: 60 })),
  nested: Type.Optional(Type.Object({ deep: Type.Array(Type.Object({ x: Type.Integer() })) })),
  mode: Type.Optional(Type.Union([Type.Literal('video'), Type.Literal('timelapse')])),
})
const validator = new Validator(tableRoute('POST', '/x/{id}', { params: Type.Object({ id: Type.Integer() }), query, body }))
const asked = (pairs: Record<string, string>) => validator.query(new Map(Object.entries(pairs)))

t.test('query texts become what the schema wants', async (t) => {
  t.strictSame(asked({}), { limit: 100 })
  t.strictSame(asked({ limit: '7', recursive: '1', scale: '-1.5e2', fps: '30', level: 'low', text: '12', token: 'x' }), {
    limit: 7,
    recursive: true,
    scale: -150,
    fps: 30,
    level: 'low',
    text: '12',
  })
  const bad: [Record<string, string>, string][] = [
    [{ limit: '0' }, 'query.limit'],
    [{ limit: '1.0' }, 'query.limit'],
    [{ limit: ' 1' }, 'query.limit'],
    [{ limit: '0x10' }, 'query.limit'],
    [{ limit: '' }, 'query.limit'],
    [{ recursive: 'yes' }, 'query.recursive'],
    [{ scale: 'NaN' }, 'query.scale'],
    [{ scale: '1e999' }, 'query.scale'],
    [{ fps: '25' }, 'query.fps'],
    [{ nope: '1' }, 'query.nope'],
    [Object.fromEntries([['__proto__', '1']]), 'query.__proto__'],
    [{ constructor: '1' }, 'query.constructor'],
  ]
  for (const [pairs, details] of bad)
    t.equal(
      refused(() => asked(pairs)),
      details,
      JSON.stringify(pairs),
    )
  t.throws(() => asked({ level: 'mid' }), /Expected one of low, high/)
})

t.test('a route without a query takes only the token', async (t) => {
  const bare = new Validator(tableRoute('GET', '/x'))
  t.strictSame(bare.query(new Map([['token', 'x']])), {})
  t.equal(
    refused(() => bare.query(new Map([['a', 'x']]))),
    'query.a',
  )
})

t.test('params', async (t) => {
  t.strictSame(validator.params({ id: '5' }), { id: 5 })
  t.equal(
    refused(() => validator.params({ id: 'five' })),
    'params.id',
  )
})

t.test('bodies', async (t) => {
  t.strictSame(validator.body({ fps: 30, mode: 'video' }), { fps: 30, mode: 'video' })
  const bad: [unknown, string][] = [
    [undefined, 'body'],
    [null, 'body'],
    [[], 'body'],
    [{ fps: '30' }, 'body.fps'],
    [{ fps: 61 }, 'body.fps'],
    [{ mode: 'x' }, 'body.mode'],
    [{ other: 1 }, 'body.other'],
    [{ nested: { deep: [{ x: 1, y: 2 }] } }, 'body.nested.deep.0.y'],
    [{ nested: {} }, 'body.nested.deep'],
  ]
  for (const [value, details] of bad)
    t.equal(
      refused(() => validator.body(value)),
      details,
      JSON.stringify(value),
    )

  const optional = new Validator(tableRoute('POST', '/x', { body, bodyOptional: true }))
  t.strictSame(optional.body(undefined), {})
  t.equal(
    refused(() => optional.body(null)),
    'body',
  )

  const none = new Validator(tableRoute('POST', '/x'))
  t.strictSame(none.body({}), {})
  t.equal(
    refused(() => none.body({ a: 1 })),
    'body',
  )
})

t.test('of a union the nearest variant complains', async (t) => {
  const either = Type.Union([Type.Object({ a: Type.Integer(), b: Type.Integer() }), Type.Object({ c: Type.Integer() })])
  const union = new Validator(tableRoute('POST', '/x', { body: either }))
  t.strictSame(union.body({ c: 1 }), { c: 1 })
  t.equal(
    refused(() => union.body({ a: 1, b: 'x' })),
    'body.b',
  )
})

t.test('JSON from outside', async (t) => {
  const parse = (text: string) => parseJson(Buffer.from(text), 4)
  t.strictSame(parse('{"a":[1]}'), { a: [1] })
  for (const text of ['', '{', '{"a":1}}', "{'a':1}", 'NaN'])
    t.equal(
      refused(() => parse(text)),
      'body',
      text,
    )
  t.equal(
    refused(() => parseJson(Uint8Array.of(0x22, 0xff, 0x22), 4)),
    'body',
  )
  t.equal(
    refused(() => parse('{"a":{"__proto__":{"x":1}}}')),
    'body.a.__proto__',
  )
  t.equal(
    refused(() => parse(String.raw`{"\u005f_proto__":1}`)),
    'body.__proto__',
  )
  t.throws(() => parse('[[[[[1]]]]]'), /nested/)
  t.throws(() => parseJson(Buffer.from('['.repeat(30_000) + ']'.repeat(30_000)), 32), /nested/)
  t.ok(isJsonType(''))
  t.ok(isJsonType('Application/JSON; charset=utf-8'))
  t.notOk(isJsonType('text/plain'))
})

t.test('coercion never invents: the number written out again is the number', async () => {
  fc.assert(fc.property(fc.maxSafeInteger(), (value) => coerce(Type.Integer(), String(value)) === value))
  fc.assert(
    fc.property(fc.string(), (text) => {
      const value = coerce(Type.Integer(), text)
      return value === text || (Number.isSafeInteger(value) && (String(value) === text || text === '-0'))
    }),
  )
  fc.assert(
    fc.property(fc.string(), (text) => {
      const value = coerce(Type.Number(), text)
      return value === text || Number.isFinite(value)
    }),
  )
  fc.assert(
    fc.property(fc.string(), (text) => {
      const value = coerce(Type.Boolean(), text)
      return value === text || typeof value === 'boolean'
    }),
  )
})
