/** The server on a data partition that somebody else has filled to the last byte. */
import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import { Store } from '../../../app/server/store/index.ts'
import { type Api, call, login, until } from '../../support/api.ts'
import { fillDisk, freeDisk, memoryDisk } from '../../support/scratch.ts'
import { startQuickServer } from '../../support/server.ts'

const FULL = { status: 503, body: { error: { code: 'INSUFFICIENT_STORAGE' } } }

/** What the server would write over the days, until it is refused. */
async function useUp(dataDir: string): Promise<void> {
  const store = new Store(join(dataDir, 'db'), pino({ level: 'silent' }))
  await store.start()
  const rows = store.table<number, string>('filler')
  let next = 0
  for (const length of [100_000, 5000, 1]) {
    t.throws(() => {
      for (;;) rows.put(next++, 'x'.repeat(length))
    }, FULL.body.error)
  }
  await store.stop()
}

t.test('it starts, lets in, reads and deletes, refuses to store, and goes on by itself when there is space', async (t) => {
  const disk = memoryDisk(t, '96m')
  const dataDir = join(disk, 'data')
  const before = await startQuickServer(t, { dataDir })
  const first = await login(before)
  const add = (api: Api, username: string) => api.post('/api/users', { username, password: 'Battery-Staple-7', role: 'viewer' })
  t.match(await add(first, 'known'), { status: 200 })
  await before.stop()
  fillDisk(disk)
  await useUp(dataDir)
  fillDisk(disk)

  const server = await startQuickServer(t, { dataDir })
  const api = await login(server)
  t.match(await api.get('/api/users'), { status: 200, body: { total: 2 } })
  // A few small changes may still have their place.
  let accounts = 2
  await until(
    () => add(api, `user${accounts}`),
    ({ status }) => status !== 200 || accounts++ > 1000,
    'the end of all room',
  )
  t.match(await add(api, 'refused'), FULL)
  t.match(await api.put('/api/config/storage', { storage: { retention_days: 9 } }), FULL)
  for (let n = 0; n < 8; n++) {
    const wrong = await call(`${server.base}/api/login`, 'POST', {}, { username: `nobody${n}`, password: 'wrong' })
    t.ok([401, 403].includes(wrong.status), 'a failed login is one')
  }
  t.match(await api.delete('/api/users/known'), { status: 200 })
  t.match((await api.get('/api/users')).body, { total: accounts - 1 })
  const lines = () => server.log.map((line) => (JSON.parse(line) as { msg: string }).msg)
  t.equal(lines().filter((line) => line.startsWith('the disk is full')).length, 1)

  freeDisk(disk)
  await until(lines, (all) => all.some((line) => line.startsWith('there is space')), 'the recovery')
  t.match(await add(api, 'again'), { status: 200 })
  t.notOk(lines().some((line) => line.startsWith('unhandled')))
  t.equal((await server.stop()).code, 0)
})
