import t from 'tap'
import { isText, pickCoding } from '../../../app/server/http/encoding.ts'

t.test('the first coding of ours that the client takes', async (t) => {
  const both = ['br', 'gzip'] as const
  const cases: [string, string | null][] = [
    ['', null],
    ['gzip', 'gzip'],
    ['gzip, br', 'br'],
    ['br;q=0, gzip;q=0.5', 'gzip'],
    ['*', 'br'],
    ['*;q=0', null],
    ['identity', null],
    ['GZIP ; q=1.0', 'gzip'],
    ['gzip;q=nonsense', null],
  ]
  for (const [header, expected] of cases) t.equal(pickCoding(header, [...both]), expected, header)
})

t.test('what shrinks', async (t) => {
  for (const type of ['text/html', 'application/json; charset=utf-8', 'image/svg+xml', 'application/soap+xml'])
    t.ok(isText(type), type)
  for (const type of ['image/jpeg', 'video/mp4', 'application/octet-stream']) t.notOk(isText(type), type)
})
