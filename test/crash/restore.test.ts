import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { type Api, login } from '../support/api.ts'
import { scratchFolder } from '../support/scratch.ts'
import { startServer } from '../support/server.ts'

const KILLS = Math.ceil(Number(process.env.CRASH_KILLS ?? 50) / 4)
const LONGEST_MS = 300
const BACKUPS = ['one', 'two'] as const

/** Every part of the settings says which backup it is of. */
async function furnish(admin: Api, n: number): Promise<void> {
  await admin.put('/api/config/storage', { storage: { retention_days: n, quota_bytes: 10 ** 12 + n } })
  await admin.put('/api/config/logging', { logging: { components: { config: n === 1 ? 'info' : 'warn' } } })
  await admin.post('/api/settings', { recordingQueueSize: n, timelapseInterval: 1000 + n, brightness: n })
  await admin.put('/api/users/eve', { email: `eve-${n}@example.org` })
}

async function read(admin: Api): Promise<number[]> {
  const { storage, logging } = (await admin.get('/api/config')).body
  const settings = (await admin.get('/api/settings')).body
  const users = (await admin.get('/api/users')).body.users as unknown as { username: string; email: string }[]
  const email = users.find(({ username }) => username === 'eve')?.email ?? ''
  return [
    Number(storage?.retention_days),
    Number(storage?.quota_bytes) - 10 ** 12,
    logging?.components?.config === ('info' as unknown) ? 1 : 2,
    Number(settings.recordingQueueSize),
    Number(settings.timelapseInterval) - 1000,
    Number(settings.brightness),
    Number(/\d+/.exec(email)?.[0]),
  ]
}

t.test(`${KILLS} kills in the middle of restoring`, { timeout: KILLS * 8000 + 60_000 }, async (t) => {
  const scratch = scratchFolder(t, 'crash-restore')
  const options = { dataDir: join(scratch, 'data'), args: ['--rate-limits', 'off', '--log-level', 'error'] }
  let server = await startServer(t, options)
  let admin = await login(server)
  await admin.post('/api/users', { username: 'eve', password: 'Battery-Staple-7', role: 'viewer' })
  for (const [index, backup_name] of BACKUPS.entries()) {
    await furnish(admin, index + 1)
    t.match(await admin.post('/api/system/backup/config', { backup_name }), { status: 200 })
  }

  const seen = new Set<number>()
  for (let kill = 0; kill < KILLS; kill++) {
    let gone = false
    let restored = 0
    const restoring = (async () => {
      for (let n = kill; !gone; n++) {
        const answer = await admin.post('/api/system/restore/config', { backup_name: BACKUPS[n % 2] }).catch((error: unknown) => {
          if (gone) return null
          throw error
        })
        if (answer === null) return
        if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
        restored++
      }
    })()
    await delay(5 + Math.random() * LONGEST_MS)
    gone = true
    await server.kill()
    await restoring
    server = await startServer(t, options)
    admin = await login(server)
    const [first, ...others] = await read(admin)
    if (others.some((other) => other !== first)) t.fail(`half of a restore: ${[first, ...others]}`)
    if (restored === 0 && first !== 1 && first !== 2) t.fail(`neither backup: ${first}`)
    seen.add(first ?? 0)
  }
  t.same([...seen].sort(), [1, 2], 'both have been found')
})
