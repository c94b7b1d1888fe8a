/** Restoring where something fails in the middle, and listing without keeping others waiting. */
import { readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { Backups } from '../../../app/server/backup/index.ts'
import type { Part } from '../../../app/server/backup/part.ts'
import { Bus } from '../../../app/server/bus.ts'
import { Configuration } from '../../../app/server/config/index.ts'
import { Categories, CategoryTransfer, type Places } from '../../../app/server/recording/index.ts'
import { SettingsTransfer } from '../../../app/server/state/index.ts'
import { Store } from '../../../app/server/store/index.ts'
import { scratchFolder } from '../../support/scratch.ts'

const silent = pino({ level: 'silent' })
const by = { username: 'admin', role: 'admin', address: '127.0.0.1' } as never

async function rig(t: Test, ...more: Part[]) {
  const folder = scratchFolder(t, 'restore')
  const store = new Store(join(folder, 'db'), silent)
  await store.start()
  const bus = new Bus()
  const told: string[] = []
  bus.on('event', (event) => told.push(event.type))
  bus.on('state', ({ key }) => told.push(key))
  const configuration = new Configuration(store, bus, silent)
  configuration.start()
  const copy = join(folder, 'categories.json')
  const categories = new Categories(store, copy, bus, silent)
  categories.start()
  // What the settings wait for.
  const places = { check: async () => {} }
  const settings = new SettingsTransfer(store, places as unknown as Places, bus)
  const parts = [settings, new CategoryTransfer(categories), ...more]
  const backups = new Backups(join(folder, 'backups'), configuration, parts, bus, silent)
  backups.start()
  t.teardown(async () => {
    await configuration.stop()
    await store.stop()
  })
  const table = store.table<string, unknown>('settings')
  const restore = () => backups.restore({ name: 'one', passphrase: undefined, dryRun: false, by })
  /** A backup that differs from what is there in a section, in settings and in a category. */
  const furnish = async () => {
    await backups.create({ name: 'one', passphrase: null })
    await configuration.merge('storage', { retention_days: 3 })
    table.put('recordingQueueSize', 7)
    table.put('recordingStorage', { primary: '/media/data/recordings', backup: '/media/card', network: '' })
    categories.update(1, { color: '#000000' })
    told.length = 0
  }
  return { folder, configuration, categories, copy, places, table, backups, told, restore, furnish }
}

/** Its value is of no interest. */
function part(name: string, { write = () => {}, act = () => {} }: { write?: () => void; act?: () => void }): Part {
  return { name, collect: () => name, prepare: () => ({ changes: [name], skipped: [], write, act }) }
}

t.test('when storing fails, neither the copy beside the database nor anybody else knows of it', async (t) => {
  const write = () => {
    throw new Error('the database is full')
  }
  const { configuration, categories, copy, told, restore, furnish } = await rig(t, part('broken', { write }))
  await furnish()
  const before = readFileSync(copy, 'utf8')
  await t.rejects(restore(), { message: 'the database is full' })
  t.equal(categories.get(1).color, '#000000')
  t.equal(configuration.get('storage').retention_days, 3)
  t.equal(readFileSync(copy, 'utf8'), before)
  t.same(told, [])
})

t.test('settings and categories that change while it checks are not mixed with the old ones', async (t) => {
  const { configuration, categories, places, table, told, restore, furnish } = await rig(t)
  await furnish()
  const refused = async (change: () => void, details: string) => {
    places.check = async () => change()
    await t.rejects(restore(), { code: 'CONFLICT', details })
    t.equal(configuration.get('storage').retention_days, 3)
  }
  await refused(() => table.put('recordingQueueSize', 9), 'settings')
  t.equal(table.get('recordingQueueSize'), 9)
  places.check = async () => {}
  await restore()
  t.not(table.get('recordingQueueSize'), 9)
  t.not(categories.get(1).color, '#000000')
  t.ok(told.includes('tag_category_changed'))
  t.ok(told.includes('settings_changed'))
})

t.test('a part that does not act keeps no other back, and the answer names it', async (t) => {
  const acted: string[] = []
  const act = () => {
    throw new Error('no')
  }
  const last = part('last', { act: () => acted.push('last') })
  const { configuration, backups, told, restore } = await rig(t, part('first', { act }), last)
  await backups.create({ name: 'one', passphrase: null })
  await configuration.merge('storage', { retention_days: 3 })
  await t.rejects(restore(), { code: 'INTERNAL_ERROR', details: 'first', message: /stored/ })
  t.same(acted, ['last'])
  t.equal(configuration.get('storage').retention_days, 30)
  t.ok(told.includes('backup_restored'))
})

t.test('backups are read once, and others have their turn meanwhile', async (t) => {
  const big: Part = { ...part('big', {}), collect: () => Array.from({ length: 60_000 }, (_, i) => i) }
  const { backups, folder } = await rig(t, big)
  for (let i = 0; i < 20; i++) await backups.create({ name: `b${i}`, passphrase: null })
  let turns = 0
  let ticking = true
  const tick = () => {
    turns++
    if (ticking) setImmediate(tick)
  }
  setImmediate(tick)
  t.equal((await backups.list()).length, 20)
  t.ok(turns > 1, `${turns} turns of others`)
  ticking = false

  const file = join(folder, 'backups/b0.json')
  const { size } = statSync(file)
  utimesSync(file, 1_700_000_000, 1_700_000_000)
  await backups.list()
  writeFileSync(file, Buffer.alloc(size, 'x'))
  utimesSync(file, 1_700_000_000, 1_700_000_000)
  t.equal((await backups.list()).length, 20, 'not read again')
  utimesSync(file, 1_700_000_001, 1_700_000_001)
  t.equal((await backups.list()).length, 19, 'another file is')
  backups.remove('b1')
  t.equal((await backups.list()).length, 18)
})
