import fc from 'fast-check'
import t from 'tap'
import { isNotModified, isRangeCurrent } from '../../../app/server/http/conditional.ts'
import { disposition } from '../../../app/server/http/disposition.ts'
import { parseRange } from '../../../app/server/http/range.ts'

t.test('ranges of a file of ten bytes', async (t) => {
  const cases: [string, unknown][] = [
    ['', 'whole'],
    ['bytes=0-', { start: 0, end: 9 }],
    ['bytes=2-4', { start: 2, end: 4 }],
    ['bytes=9-100', { start: 9, end: 9 }],
    ['bytes=-3', { start: 7, end: 9 }],
    ['bytes=-100', { start: 0, end: 9 }],
    ['bytes=10-', 'unsatisfiable'],
    ['bytes=-0', 'unsatisfiable'],
    ['bytes=99999999999999999999999-', 'unsatisfiable'],
    ['bytes=4-2', 'whole'],
    ['bytes=0-1,3-4', 'whole'],
    ['bytes=-', 'whole'],
    ['bytes=a-b', 'whole'],
    ['lines=0-1', 'whole'],
  ]
  for (const [header, expected] of cases) t.strictSame(parseRange(header, 10), expected, header)
  t.equal(parseRange('bytes=0-', 0), 'unsatisfiable')
})

t.test('a range always lies within the file', async () => {
  const bound = fc.option(fc.bigInt({ min: 0n, max: 1n << 70n }), { nil: '' })
  fc.assert(
    fc.property(bound, bound, fc.integer({ min: 0, max: 1000 }), (from, to, size) => {
      const range = parseRange(`bytes=${from}-${to}`, size)
      if (typeof range === 'string') return true
      return range.start >= 0 && range.start <= range.end && range.end < size
    }),
  )
  fc.assert(fc.property(fc.string(), fc.nat(), (header, size) => parseRange(header, size) !== undefined))
})

t.test('conditions', async (t) => {
  const modifiedMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
  const validators = { etag: '"a"', modifiedMs }
  const none = { ifNoneMatch: '', ifModifiedSince: '', ifRange: '', range: '' }
  const date = new Date(modifiedMs).toUTCString()
  t.notOk(isNotModified(none, validators))
  t.ok(isNotModified({ ...none, ifNoneMatch: '"b", W/"a"' }, validators))
  t.ok(isNotModified({ ...none, ifNoneMatch: '*' }, validators))
  t.notOk(isNotModified({ ...none, ifNoneMatch: '"b"', ifModifiedSince: date }, validators), 'the tag decides')
  t.ok(isNotModified({ ...none, ifModifiedSince: date }, validators))
  t.notOk(isNotModified({ ...none, ifModifiedSince: new Date(modifiedMs - 2000).toUTCString() }, validators))
  t.notOk(isNotModified({ ...none, ifModifiedSince: 'yesterday' }, validators))
  t.ok(isRangeCurrent('', validators))
  t.ok(isRangeCurrent('"a"', validators))
  t.notOk(isRangeCurrent('W/"a"', validators))
  t.ok(isRangeCurrent(date, validators))
  t.notOk(isRangeCurrent('nonsense', validators))
})

t.test('file names in headers', async (t) => {
  t.equal(disposition(false, undefined), 'inline')
  t.equal(disposition(true, 'a b.mp4'), 'attachment; filename="a b.mp4"')
  t.equal(disposition(true, 'Tür "1".mp4'), `attachment; filename="T_r _1_.mp4"; filename*=UTF-8''T%C3%BCr%20%221%22.mp4`)
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (name) => /^[\x20-\x7e]*$/.test(disposition(true, name))))
})
