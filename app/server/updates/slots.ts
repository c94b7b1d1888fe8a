/** The two places for the system, as RAUC and the boot loader tell of them. Pure. */
import { objectOf, parseJson } from './bundle.ts'

export const TRIES = 3

export interface Slot {
  readonly name: string
  readonly state: 'booted' | 'inactive'
  readonly boot_status: 'good' | 'bad'
  readonly version: string | null
  /** ISO 8601; null: not by an update. */
  readonly installed: string | null
  /** How often the boot loader still tries it before it falls back; null where it does not tell. */
  readonly tries_left: number | null
}

export interface Slots {
  readonly booted: string | null
  /** Tried first at the next boot. */
  readonly primary: string | null
  readonly slots: readonly Slot[]
}

/** `lines` are the answer of the system service: RAUC's status as JSON, then `env KEY=VALUE …`. */
export function interpretSlots(lines: readonly string[], runningVersion: string | null): Slots {
  const status = objectOf(parseJson(lines.find((line) => line.startsWith('{')) ?? ''))
  const environment = environmentOf(lines.find((line) => line.startsWith('env ')) ?? '')
  const found = slotsOf(status?.slots)
  const named = (reference: unknown): string | null => {
    const slot = found.find(({ device, bootname }) => typeof reference === 'string' && [device, bootname].includes(reference))
    return slot?.bootname ?? null
  }
  const booted = named(status?.booted) ?? found.find(({ fields }) => fields.state === 'booted')?.bootname ?? null
  const slots = found.map(({ bootname, fields }): Slot => {
    const record = objectOf(fields.slot_status)
    const version = objectOf(record?.bundle)?.version
    const timestamp = objectOf(record?.installed)?.timestamp
    const own = typeof version === 'string' && version !== '' ? version : null
    return {
      name: bootname,
      state: bootname === booted ? 'booted' : 'inactive',
      boot_status: fields.boot_status === 'good' ? 'good' : 'bad',
      // The first release came with the disk, not by RAUC.
      version: bootname === booted ? (runningVersion ?? own) : own,
      installed: typeof timestamp === 'string' && !Number.isNaN(Date.parse(timestamp)) ? timestamp : null,
      tries_left: triesLeft(environment, bootname),
    }
  })
  return { booted, primary: named(status?.boot_primary), slots: slots.sort((a, b) => (a.name < b.name ? -1 : 1)) }
}

interface Found {
  /** As RAUC calls it: `rootfs.0`. */
  readonly device: string
  /** As the boot loader does: `A`. */
  readonly bootname: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** RAUC lists objects of one key each. Only what can be booted counts. */
function slotsOf(list: unknown): Found[] {
  if (!Array.isArray(list)) return []
  return list.flatMap((item: unknown) =>
    Object.entries(objectOf(item) ?? {}).flatMap(([device, value]) => {
      const fields = objectOf(value)
      const bootname = fields?.bootname
      return fields && typeof bootname === 'string' && bootname !== '' ? [{ device, bootname, fields }] : []
    }),
  )
}

function environmentOf(line: string): ReadonlyMap<string, string> {
  const pairs = line.split(' ').slice(1)
  return new Map(pairs.map((pair) => [pair.split('=', 1)[0] ?? '', pair.slice(pair.indexOf('=') + 1)]))
}

/** GRUB's variables count what was tried, U-Boot's what is left. */
function triesLeft(environment: ReadonlyMap<string, string>, slot: string): number | null {
  const left = count(environment.get(`BOOT_${slot}_LEFT`))
  if (left !== null) return left
  const tried = count(environment.get(`${slot}_TRY`))
  if (tried === null) return null
  return environment.get(`${slot}_OK`) === '0' ? 0 : Math.max(0, TRIES - tried)
}

function count(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,3}$/.test(text) ? Number(text) : null
}
