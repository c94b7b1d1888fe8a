import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Json, login, until } from '../support/api.ts'
import { gaps, readFrameNumbers } from '../support/frames.ts'
import { scratchFolder } from '../support/scratch.ts'
import { startServer } from '../support/server.ts'

t.test('a medium that is pulled out ends the recording, and gives it back when it returns', async (t) => {
  const folder = scratchFolder(t, 'medium')
  const [card, mountPoint] = [join(folder, 'card'), join(folder, 'media/card')]
  for (const path of [card, mountPoint]) mkdirSync(path, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256m', 'tmpfs', card])
  const insert = () => execFileSync('mount', ['--bind', card, mountPoint])
  const pull = () => execFileSync('umount', ['--lazy', mountPoint])
  // Tear-downs run last first: this one after the server's.
  t.teardown(() => {
    execFileSync('umount', ['--lazy', card])
  })
  insert()
  let inserted = true
  t.teardown(() => inserted && pull())
  const server = await startServer(t, { args: ['--media-root', join(folder, 'media')] })
  t.teardown(() => server.stop())
  const api = await login(server)
  t.match(await api.put('/api/config/storage', { storage: { start_margin_bytes: 0 } }), { status: 200 })
  const places = { primary: '/media/card/video', backup: '', network: '' }
  t.match(await api.post('/api/settings', { recordingStorage: places }), { status: 200 })

  t.match(await api.post('/api/recording/start', { duration: 60, bitrate: 2_000_000 }), { status: 200 })
  const status = () => api.get('/api/recording/status')
  await until(status, ({ body }) => Number(body.duration) >= 2, 'two seconds of recording')
  t.match(await api.post('/api/settings', { recordingStorage: { ...places, primary: '/media/data/recordings' } }), {
    status: 409,
    body: { error: { code: 'RECORDING_IN_PROGRESS' } },
  })
  pull()
  inserted = false
  const ended = await until(status, ({ body }) => String(body.state) === 'stopped', 'the end')
  t.match(ended.body, { last_end: { reason: 'storage_lost' } })
  const list = async () => ((await api.get('/api/recordings')).body.recordings as unknown as Json[])[0]
  t.match(await until(list, (row) => String(row?.state) !== 'recording', 'the judgement'), { state: 'defect' })
  t.match(await api.post('/api/recording/start', { duration: 1 }), {
    status: 503,
    body: { error: { code: 'INSUFFICIENT_STORAGE' } },
  })
  t.same(readdirSync(mountPoint), [], 'nothing is written where the medium was')

  insert()
  inserted = true
  const back = await until(list, (row) => String(row?.state) === 'ready', 'the recording is back')
  const numbers = await readFrameNumbers({ input: join(card, String(back?.path).replace('/media/card/', '')) })
  t.same(gaps(numbers), [])
  t.ok(numbers.length >= 45, `${numbers.length} pictures`)
  t.match(await api.post('/api/recording/start', { duration: 1, bitrate: 2_000_000 }), { status: 200 })
  await until(
    () => api.get('/api/recordings?state=ready'),
    ({ body }) => Number(body.total) === 2,
    'a new one',
  )
})
