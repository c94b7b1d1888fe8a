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
  readonly pending: Pending | null
}

export const PENDING_STATES = ['installing', 'waits_for_restart', 'on_trial'] as const

/** A release that has not been confirmed in its slot yet. */
export interface Pending {
  readonly slot: string
  readonly version: string | null
  readonly state: (typeof PENDING_STATES)[number]
}

/**
 * `lines` are the answer of the system service: RAUC's status as JSON, `env KEY=VALUE …`, `releases SLOT=VERSION …` of those that have run, and
 * `pending KEY=VALUE …` of an update.
 */
export function interpretSlots(lines: readonly string[], runningVersion: string | null): Slots {
  const status = objectOf(parseJson(lines.find((line) => line.startsWith('{')) ?? ''))
  const environment = pairsOf('env', lines)
  const haveRun = pairsOf('releases', lines)
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
    // The first release came with the disk, not by RAUC.
    const own = typeof version === 'string' && version !== '' ? version : haveRun.get(bootname) || null
    return {
      name: bootname,
      state: bootname === booted ? 'booted' : 'inactive',
      boot_status: fields.boot_status === 'good' ? 'good' : 'bad',
      version: bootname === booted ? (runningVersion ?? own) : own,
      installed: typeof timestamp === 'string' && !Number.isNaN(Date.parse(timestamp)) ? timestamp : null,
      tries_left: triesLeft(environment, bootname),
    }
  })
  const primary = named(status?.boot_primary)
  const pending = pendingOf(pairsOf('pending', lines), booted) ?? waiting(slots, booted, primary)
  return { booted, primary, slots: slots.sort((a, b) => (a.name < b.name ? -1 : 1)), pending }
}

function pendingOf(update: ReadonlyMap<string, string>, booted: string | null): Pending | null {
  const slot = update.get('slot')
  if (slot === undefined) return null
  const installing = update.get('state') === 'installing' && slot !== booted
  const state = slot === booted ? 'on_trial' : installing ? 'installing' : 'waits_for_restart'
  return { slot, version: update.get('version') || null, state }
}

/** Also after a rollback. */
function waiting(slots: readonly Slot[], booted: string | null, primary: string | null): Pending | null {
  const next = slots.find(({ name }) => name === primary && name !== booted)
  return next ? { slot: next.name, version: next.version, state: 'waits_for_restart' } : null
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

function pairsOf(head: string, lines: readonly string[]): ReadonlyMap<string, string> {
  const line = lines.find((one) => one.startsWith(`${head} `)) ?? ''
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
