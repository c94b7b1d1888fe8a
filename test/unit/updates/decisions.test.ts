/** Which updates are let in: versions in order, and what speaks against one. */
import fc from 'fast-check'
import t from 'tap'
import { type Candidate, isNewer, type Rules, refusal } from '../../../app/server/updates/judge.ts'
import { compareVersions } from '../../../app/server/updates/version.ts'

/** The example of semver.org, in its order. */
const ORDERED = [
  '0.9.9',
  '1.0.0-alpha',
  '1.0.0-alpha.1',
  '1.0.0-alpha.beta',
  '1.0.0-beta',
  '1.0.0-beta.2',
  '1.0.0-beta.11',
  '1.0.0-rc.1',
  '1.0.0',
  '1.0.1',
  '1.2.0',
  '1.10.0',
  '2.0.0',
]

t.test('versions in the order of semver.org', async (t) => {
  for (const [i, left] of ORDERED.entries())
    for (const [j, right] of ORDERED.entries())
      t.equal(Math.sign(compareVersions(left, right) ?? Number.NaN), Math.sign(i - j), `${left} and ${right}`)
  t.equal(compareVersions('1.0.0+one', '1.0.0+two'), 0, 'a build is no difference')
})

t.test('what is no version is compared with nothing', async (t) => {
  for (const text of ['', '1', '1.0', '1.0.0.0', 'v1.0.0', '01.0.0', '1.0.0-', '1.0.0 ', '9999999999.0.0', 'latest'])
    t.equal(compareVersions(text, '1.0.0'), null, text)
})

t.test('the order is one: turned round it is the opposite, and it goes on through the middle', async () => {
  const part = fc.nat({ max: 12 })
  const identifier = fc.oneof(part.map(String), fc.constantFrom('a', 'b', 'rc'))
  const version = fc
    .tuple(part, part, part, fc.array(identifier, { maxLength: 3 }))
    .map(([major, minor, patch, pre]) => `${major}.${minor}.${patch}${pre.length > 0 ? `-${pre.join('.')}` : ''}`)
  const order = (a: string, b: string) => Math.sign(compareVersions(a, b) ?? Number.NaN)
  fc.assert(
    fc.property(version, version, version, (a, b, c) => {
      const opposite = order(a, b) + order(b, a) === 0
      const through = order(a, b) < 0 && order(b, c) < 0 ? order(a, c) < 0 : true
      return opposite && through && order(a, a) === 0
    }),
  )
})

const RULES: Rules = { version: '1.2.3', compatible: 'camera-server-test', allowDowngrade: false }
const GOOD: Candidate = { version: '1.3.0', compatible: 'camera-server-test', valid: true, problem: null }

t.test('a newer release for this device is let in', async (t) => {
  t.equal(refusal(GOOD, RULES), null)
  t.equal(refusal({ ...GOOD, valid: null }, RULES), null, 'one that nobody could look at yet')
  t.equal(isNewer(GOOD, RULES), true)
})

t.test('what speaks against one, and with which code', async (t) => {
  const code = (change: Partial<Candidate>, rules: Partial<Rules> = {}) =>
    refusal({ ...GOOD, ...change }, { ...RULES, ...rules })?.code ?? null
  t.equal(code({ valid: false, problem: 'expired' }), 'INVALID_FORMAT')
  t.match(refusal({ ...GOOD, valid: false, problem: 'expired' }, RULES)?.message, /expired/)
  t.equal(code({ compatible: 'camera-server-other' }), 'UNSUPPORTED_SETTING')
  t.equal(code({ compatible: 'camera-server-other' }, { allowDowngrade: true }), 'UNSUPPORTED_SETTING')
  t.equal(code({ version: null }), 'INVALID_FORMAT')
  t.equal(code({ compatible: null }), 'INVALID_FORMAT')
  t.equal(code({ version: '1.2.2' }), 'CONFLICT', 'older')
  t.equal(code({ version: '1.2.3-rc.1' }), 'CONFLICT', 'what led to this release is older too')
  t.equal(code({ version: 'nightly' }), 'CONFLICT', 'nobody can say')
  t.equal(code({}, { version: '0.0.0-dev build' }), 'CONFLICT', 'nor of what runs')
  for (const version of ['1.2.2', 'nightly']) t.equal(code({ version }, { allowDowngrade: true }), null, `${version}, allowed`)
  t.equal(code({ version: '1.2.3' }), null, 'the same once more')
})

t.test('only a newer one is offered as news', async (t) => {
  t.equal(isNewer({ ...GOOD, version: '1.2.3' }, RULES), false)
  t.equal(isNewer({ ...GOOD, version: '1.0.0' }, { ...RULES, allowDowngrade: true }), false)
  t.equal(isNewer({ ...GOOD, compatible: 'other' }, RULES), false)
})
