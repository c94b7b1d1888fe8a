import t from 'tap'
import { defaultsOf, fitSection } from '../../../app/server/config/index.ts'

t.test('what is stored is made to fit: fields that are unknown or out of range are dropped', async (t) => {
  const stored = { retention_days: 7, quota_bytes: -1, colour: 'red', constructor: 1, toString: 2 }
  const { value, dropped } = fitSection('storage', stored, defaultsOf('storage'))
  t.same(value, { ...defaultsOf('storage'), retention_days: 7 })
  t.same(dropped.sort(), ['colour', 'constructor', 'quota_bytes', 'toString'])
  t.same(fitSection('storage', null, defaultsOf('storage')), { value: defaultsOf('storage'), dropped: [] })
})
