import t from 'tap'
import { httpDate, parseHttpDate } from '../../../app/server/http/dates.ts'

t.test('the three forms of a date, and nothing else', async (t) => {
  const now = Date.UTC(2026, 0, 1)
  const known = Date.UTC(1994, 10, 6, 8, 49, 37)
  for (const text of ['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994']) {
    t.equal(parseHttpDate(text, now), known, text)
  }
  t.equal(parseHttpDate('Sunday, 06-Nov-70 08:49:37 GMT', now), Date.UTC(2070, 10, 6, 8, 49, 37), 'at most 50 years ahead')
  for (const text of [
    '',
    '0',
    '1994',
    '1994-11-06T08:49:37Z',
    'Sun, 06 Nov 1994 08:49:37',
    'Sun, 06 Nov 1994 08:49:37 UTC',
    'Sun, 6 Nov 1994 08:49:37 GMT',
    'Sun, 31 Jun 1994 08:49:37 GMT',
    'Sun, 06 Nov 1994 24:00:00 GMT',
    'sun, 06 nov 1994 08:49:37 gmt',
  ]) {
    t.equal(parseHttpDate(text, now), null, text)
  }
})

t.test('dates beyond what a header can say', async (t) => {
  t.equal(httpDate(Date.UTC(1994, 10, 6, 8, 49, 37)), 'Sun, 06 Nov 1994 08:49:37 GMT')
  t.equal(httpDate(9e18), 'Fri, 31 Dec 9999 23:59:59 GMT')
  t.equal(httpDate(-9e18), 'Thu, 01 Jan 1970 00:00:00 GMT')
})
