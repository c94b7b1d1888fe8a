/** The battery, where the kernel knows of one. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Battery {
  readonly percent: number
  readonly discharging: boolean
}

/** The emptiest one that feeds the machine; null without any. Those of mice and the like do not count. */
export function readBattery(root = '/'): Battery | null {
  const folder = join(root, 'sys/class/power_supply')
  const read = (name: string, file: string): string => {
    try {
      return readFileSync(join(folder, name, file), 'utf8').trim()
    } catch {
      return ''
    }
  }
  const batteries = names(folder).flatMap((name) => {
    const percent = Number.parseInt(read(name, 'capacity'), 10)
    const ours = read(name, 'type') === 'Battery' && read(name, 'scope') !== 'Device'
    return ours && Number.isFinite(percent) ? [{ percent, discharging: read(name, 'status') === 'Discharging' }] : []
  })
  return batteries.sort((a, b) => a.percent - b.percent)[0] ?? null
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
