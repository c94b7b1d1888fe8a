/** What the console decides without a browser: notices, waiting times, password rules. */
import fc from 'fast-check'
import t from 'tap'
import { checkPasswordRules } from '../../../app/server/auth/passwords.ts'
import { backoffMs, pause } from '../../../app/web/src/backoff.ts'
import { noticeFor } from '../../../app/web/src/notices.ts'
import { PASSWORD_RULES } from '../../../app/web/src/password-rules.ts'

t.test('events become notices in plain words', (t) => {
  const notice = (category: string, type: string, data: Record<string, unknown> = {}) => noticeFor({ category, type, data })
  t.same(notice('recording', 'stopped', { filename: 'a.mp4', reason: 'stopped', state: 'ready' }), {
    kind: 'success',
    text: 'Recording saved: a.mp4',
  })
  t.same(notice('recording', 'stopped', { filename: 'a.mp4', reason: 'disk_full', state: 'ready' }), {
    kind: 'error',
    text: 'The disk is full: the recording was ended (a.mp4)',
  })
  t.match(notice('recording', 'stopped', { filename: 'a.mp4', reason: 'stopped', state: 'defect' }), { kind: 'error' })
  t.match(notice('alert', 'storage_full', { available: 0 }), { kind: 'error', text: /disk is full/ })
  t.match(notice('alert', 'fan_broken'), { text: 'Alert: fan broken' })
  t.match(notice('camera', 'snapshot', { filename: 's.jpg' }), { kind: 'success', text: 'Still saved: s.jpg' })
  t.match(notice('camera', 'no_signal'), { kind: 'error' })
  t.equal(notice('recording', 'started', { filename: 'a.mp4' }), null, 'the page shows that anyway')
  t.end()
})

t.test('waiting times grow, stay bounded and differ', (t) => {
  const longest = [0, 1, 2, 3, 4, 5, 60].map((attempt) => backoffMs(attempt, 10_000, () => 1))
  t.same(longest, [500, 1000, 2000, 4000, 8000, 10_000, 10_000])
  t.equal(
    backoffMs(3, 10_000, () => 0),
    3000,
  )
  t.end()
})

t.test('a pause ends at once when it is aborted', async (t) => {
  const ending = new AbortController()
  const pausing = pause(60_000, ending.signal)
  ending.abort()
  await pausing
  await pause(60_000, ending.signal)
  t.pass()
})

t.test('what the page shows as kept is what the server takes', (t) => {
  const characters = fc.constantFrom('a', 'b', 'Z', 'Ä', 'ß', '7', '٣', '!', '-', ' ', '_')
  fc.assert(
    fc.property(fc.string({ unit: characters, minLength: 1, maxLength: 12 }), (password) => {
      const shown = PASSWORD_RULES.every(({ kept }) => kept(password))
      let taken = true
      try {
        checkPasswordRules(password, 'password')
      } catch {
        taken = false
      }
      return shown === taken
    }),
    { numRuns: 2000 },
  )
  t.end()
})
