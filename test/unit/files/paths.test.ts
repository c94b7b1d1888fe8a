import t from 'tap'
import { ApiError } from '../../../app/server/errors.ts'
import { canBeNamed, devicePath, parsePath } from '../../../app/server/files/paths.ts'
import { sorted } from '../../../app/server/files/walk.ts'

t.test('paths are relative to the storage, or device paths', async (t) => {
  for (const [text, parts] of [
    ['', []],
    ['/', []],
    ['/media/data', []],
    ['/media/data/', []],
    ['media/data', []],
    ['a', ['a']],
    ['a/b c/ü.mp4', ['a', 'b c', 'ü.mp4']],
    ['a/', ['a']],
    ['/media/data/a/b', ['a', 'b']],
    ['media/data/a', ['a']],
    ['media/x', ['media', 'x']],
    ['...', ['...']],
    ['a/.uploads', ['a', '.uploads']],
    [`${'ü'.repeat(127)}a`, [`${'ü'.repeat(127)}a`]],
    ['a%2fb', ['a%2fb']],
  ] as const) {
    t.same(parsePath(text, 'path'), parts, text)
  }
  t.equal(devicePath(['a', 'b']), '/media/data/a/b')
  t.equal(devicePath([]), '/media/data')
})

t.test('what no file of the storage can be called is refused, with the name of the field', async (t) => {
  const refused = [
    '//',
    '/etc/passwd',
    '/media',
    '/media/dat',
    '/media/database',
    '..',
    'a/../b',
    './a',
    '/media/data/../../etc/passwd',
    'a//b',
    'a\\b',
    '..\\..\\etc',
    'a\0b',
    'a\nb',
    'a\x7f',
    'a\u0085',
    'a\u202eb',
    'a\u200b',
    '\ufeffa',
    'a\ud800',
    '\ufffd',
    'ü'.repeat(128),
    'a'.repeat(256),
    'a/'.repeat(33),
    `${'a'.repeat(200)}/`.repeat(25),
    '.uploads',
    '.Uploads/x',
    '/media/data/.UPLOADS',
    '.uploadſ',
  ]
  for (const text of refused) {
    try {
      parsePath(text, 'query.path')
      t.fail(JSON.stringify(text))
    } catch (error) {
      t.match(error, { code: 'INVALID_REQUEST', details: 'query.path' }, JSON.stringify(text))
      t.ok(error instanceof ApiError)
    }
  }
  t.ok(canBeNamed('ü'.repeat(127)))
  t.notOk(canBeNamed('a\rb'))
})

t.test('large folders are sorted as small ones are', async (t) => {
  const names = Array.from({ length: 30_000 }, (_, index) => `f${(index * 7919) % 30_011}`)
  t.same(await sorted([...names]), [...names].sort())
  t.same(await sorted([]), [])
})
