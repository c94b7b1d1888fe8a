import t from 'tap'
import {
  formatBitrate,
  formatBytes,
  formatDuration,
  formatPage,
  formatResolution,
  formatUptime,
  formatWhen,
} from '../../../app/web/src/format.ts'

t.test('sizes have decimal units and at most three digits', (t) => {
  const cases: [number, string][] = [
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1 kB'],
    [1234, '1.23 kB'],
    [12_345, '12.3 kB'],
    [99_949, '99.9 kB'],
    [99_950, '100 kB'],
    [999_499, '999 kB'],
    [999_500, '1 MB'],
    [1_500_000_000, '1.5 GB'],
    [2_000_000_000_000_000, '2000 TB'],
    [-5, '0 B'],
  ]
  for (const [bytes, text] of cases) t.equal(formatBytes(bytes), text, String(bytes))
  t.end()
})

t.test('durations read like a clock and never round up', (t) => {
  const cases: [number, string][] = [
    [0, '0:00'],
    [-1, '0:00'],
    [999, '0:00'],
    [7000, '0:07'],
    [59_999, '0:59'],
    [60_000, '1:00'],
    [3_599_999, '59:59'],
    [3_723_000, '1:02:03'],
    [360_000_000, '100:00:00'],
  ]
  for (const [ms, text] of cases) t.equal(formatDuration(ms), text, String(ms))
  t.end()
})

t.test('uptime shows its two largest units', (t) => {
  t.equal(formatUptime(0), '0 s')
  t.equal(formatUptime(59.9), '59 s')
  t.equal(formatUptime(60), '1 min')
  t.equal(formatUptime(3661), '1 h 1 min')
  t.equal(formatUptime(90_061), '1 d 1 h')
  t.equal(formatUptime(86_400 + 59), '1 d')
  t.end()
})

t.test('days have names while they are near', (t) => {
  const now = new Date(2026, 2, 1, 0, 10).getTime()
  t.equal(formatWhen(new Date(2026, 2, 1, 0, 5, 9).getTime(), now), 'Today, 00:05:09')
  t.equal(formatWhen(new Date(2026, 1, 28, 23, 59, 1).getTime(), now), 'Yesterday, 23:59:01')
  t.equal(formatWhen(new Date(2026, 1, 27, 14, 3, 9).getTime(), now), '27 Feb 2026, 14:03:09')
  t.end()
})

t.test('the rest', (t) => {
  t.equal(formatResolution('1280x720'), '1280 × 720')
  t.equal(formatBitrate(640.4), '640 kbit/s')
  t.equal(formatBitrate(4000), '4 Mbit/s')
  t.equal(formatBitrate(2560), '2.6 Mbit/s')
  t.equal(formatPage(0, 20, 57), '1–20 of 57')
  t.equal(formatPage(40, 17, 57), '41–57 of 57')
  t.equal(formatPage(0, 0, 0), '0 of 0')
  t.end()
})
