import fc from 'fast-check'
import t from 'tap'
import { InvalidRequest } from '../../../app/server/errors.ts'
import type { Method, Route } from '../../../app/server/http/route.ts'
import { allowed, Router } from '../../../app/server/http/router.ts'
import { parseQuery, splitPath } from '../../../app/server/http/target.ts'
import { refused, tableRoute } from './table.ts'

const routes: Route[] = [
  tableRoute('GET', '/image'),
  tableRoute('GET', '/api/users'),
  tableRoute('GET', '/api/users/me'),
  tableRoute('DELETE', '/api/users/{name}'),
  tableRoute('GET', '/api/v1/users/{id}'),
  tableRoute('GET', '/api/users/{name}'),
  tableRoute('GET', '/files'),
  tableRoute('GET', '/files/{filepath+}'),
]
const router = new Router(routes)
const find = (method: string, path: string) => router.find(method, path)?.endpoint?.route.path

t.test('finds literal, parameter and wildcard, the most literal first', async (t) => {
  t.equal(find('GET', '/image'), '/image')
  t.equal(find('GET', '/api/users/me'), '/api/users/me')
  t.equal(find('GET', '/api/users/bob'), '/api/users/{name}')
  t.equal(find('DELETE', '/api/users/me'), '/api/users/{name}', 'a method that the literal does not have')
  t.strictSame(router.find('GET', '/files/a/b%20c')?.params, { filepath: 'a/b c' })
  t.strictSame(router.find('GET', '/files/a%2Fb')?.params, { filepath: 'a/b' })
  t.equal(find('GET', '/%69mage'), '/image', 'an encoded letter is the letter')
})

t.test('the versioned form is there, and the table has precedence over it', async (t) => {
  t.equal(find('GET', '/api/v1/users'), '/api/users')
  t.equal(find('GET', '/api/v1/users/7'), '/api/v1/users/{id}')
  t.equal(find('DELETE', '/api/v1/users/7'), '/api/users/{name}')
  t.equal(find('GET', '/api/v1/image'), undefined, 'only /api has it')
})

t.test('knows what is not there and what is not allowed', async (t) => {
  t.equal(router.find('GET', '/nothing'), null)
  t.equal(router.find('GET', '/image/'), null)
  t.equal(router.find('GET', '/'), null)
  const match = router.find('POST', '/api/users/me')
  t.equal(match?.endpoint, null)
  t.equal(allowed(match?.methods ?? []), 'GET, DELETE, HEAD, OPTIONS')
})

t.test('refuses path tricks', async (t) => {
  for (const path of [
    '//image',
    '/files//a',
    '/files/../image',
    '/files/%2e%2e/x',
    '/files/a%2f..%2fb',
    '/files/a%5cb',
    '/files/a\\b',
  ]) {
    t.ok(
      refused(() => router.find('GET', path)),
      path,
    )
  }
  for (const path of ['/api/users/%', '/api/users/%zz', '/api/users/%c3', '/api/users/%00', '/api/users/a%2Fb', '/files/.']) {
    t.ok(
      refused(() => router.find('GET', path)),
      path,
    )
  }
})

t.test('a table with the same operation twice is a mistake', async (t) => {
  t.throws(() => new Router([tableRoute('GET', '/a/{x}'), tableRoute('GET', '/a/{y}')]), /twice/)
})

t.test('every name survives the way through the path', async () => {
  const name = fc
    .string({ minLength: 1, unit: 'grapheme' })
    .filter((text) => !/[/\\\0]/.test(text) && text !== '.' && text !== '..')
  fc.assert(
    fc.property(name, (text) => {
      const path = `/api/users/${encodeURIComponent(text)}`
      return text === 'me' || router.find('DELETE', path)?.params.name === text
    }),
  )
})

t.test('no path crashes the router or escapes as a dot segment', async () => {
  const piece = fc.oneof(fc.string(), fc.constantFrom('..', '.', '%2e', '%2F', '%5c', '%00', '%', '/', 'files'))
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), fc.constantFrom<Method>('GET', 'DELETE'), (pieces, method) => {
      try {
        const match = router.find(method, `/files/${pieces.join('')}`)
        return !(match?.params.filepath ?? '').split('/').some((part) => part === '..' || part === '.')
      } catch (error) {
        return error instanceof InvalidRequest
      }
    }),
    { numRuns: 2000 },
  )
})

t.test('segments and query', async (t) => {
  t.strictSame(splitPath('/a/b%2Fc/'), ['a', 'b/c', ''])
  t.equal(
    refused(() => splitPath('a')),
    'path',
  )
  t.strictSame(
    [...parseQuery('a=1&b=x+y%26&c&&d==')],
    [
      ['a', '1'],
      ['b', 'x y&'],
      ['c', ''],
      ['d', '='],
    ],
  )
  t.equal(
    refused(() => parseQuery('a=1&a=2')),
    'query.a',
  )
  t.equal(
    refused(() => parseQuery('a=%')),
    'query',
  )
  t.equal(
    refused(() => parseQuery('a=%00')),
    'query',
  )
})
