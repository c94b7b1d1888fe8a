import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readBattery } from '../../../app/server/platform/index.ts'
import { scratchFolder } from '../../support/scratch.ts'

t.test('the emptiest battery of the machine itself', async (t) => {
  const root = scratchFolder(t, 'battery')
  t.equal(readBattery(root), null, 'no such folder')
  const supply = (name: string, files: Record<string, string>) => {
    const folder = join(root, 'sys/class/power_supply', name)
    mkdirSync(folder, { recursive: true })
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), `${text}\n`)
  }
  supply('AC', { type: 'Mains', online: '1' })
  supply('mouse', { type: 'Battery', scope: 'Device', capacity: '3', status: 'Discharging' })
  supply('broken', { type: 'Battery', capacity: '?' })
  t.equal(readBattery(root), null)
  supply('BAT0', { type: 'Battery', capacity: '80', status: 'Charging' })
  t.same(readBattery(root), { percent: 80, discharging: false })
  supply('BAT1', { type: 'Battery', scope: 'System', capacity: '12', status: 'Discharging' })
  t.same(readBattery(root), { percent: 12, discharging: true })
})
