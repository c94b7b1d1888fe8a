import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ADMIN, open, source } from './harness.ts'

t.test('a link expires, outlives a restart, and leaves no token in the database', async (t) => {
  const { auth, clock, events, folder, close, caller } = await open(t)
  const link = { kind: 'stream', camera: 2, recording: null, note: '', seconds: 60 } as const
  const { token, record } = auth.shares.create(ADMIN, link)
  t.match(await caller(source({ token })), {
    username: `share-${record.id}`,
    role: 'guest',
    cameras: [2],
    share: { kind: 'stream' },
  })
  const [known] = auth.rtspUsers().filter(({ name }) => name.startsWith('share-'))
  t.match(known, { name: `share-${record.id}`, cameras: [2] })
  t.equal(auth.shares.nextExpiry(), clock.now + 60_000)
  t.match(events.at(-1), { type: 'share_created', data: { username: 'admin', target: `share-${record.id}` } })
  t.notOk(JSON.stringify(events).includes(token))
  await close()
  const database = readFileSync(join(folder, 'db/camera.mdb')).toString('latin1')
  for (const secret of [token, known?.ha1_md5 ?? '', known?.ha1_sha256 ?? '']) t.notOk(database.includes(secret))

  const again = await open(t, { folder, now: clock.now })
  t.match(await again.caller(source({ token })), { share: { camera: 2 } })
  again.clock.now += 60_000
  await t.rejects(again.caller(source({ token })), { code: 'INVALID_CREDENTIALS' })
  t.same(
    again.auth.rtspUsers().map(({ name }) => name),
    ['admin'],
  )
})
