/**
 * kill -9 before each single step of an update's migration, of the way back, and of the way forth again: whichever release starts next, it finds the
 * data of before or of after, whole.
 */
import { spawnSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { addEntries, type Entry, entriesOf, release } from '../support/releases.ts'
import { scratchFolder } from '../support/scratch.ts'

const OLD = 1
const NEW = 3
const ENTRIES = 3
const MOST_STEPS = 80
const PROGRAM = join(import.meta.dirname, '../support/dying-release.ts')

function scratch(t: Test): string {
  const folder = scratchFolder(t, 'crash-schema')
  return folder
}

async function start(folder: string, schemas: number, text?: string): Promise<Entry[]> {
  const store = release(folder, schemas)
  await store.start()
  try {
    if (text !== undefined) addEntries(store, ENTRIES, text)
    return entriesOf(store)
  } finally {
    await store.stop()
  }
}

const entries = (schema: number, ...texts: string[]): Entry[] => texts.flatMap((text) => Array(ENTRIES).fill({ schema, text }))

interface Found {
  /** What the killed release finds when it starts again, each outcome once. */
  readonly itself: Entry[][]
  /** What the other one finds where it starts instead. */
  readonly other: Entry[][]
}

function note(found: Entry[][], entries: Entry[]): void {
  if (!found.some((one) => JSON.stringify(one) === JSON.stringify(entries))) found.push(entries)
}

/** Has a release killed before each of its steps, each time on a copy of `before`; with `accept`, its confirmation is one of them. */
async function killAtEachStep(t: Test, before: string, schemas: number, otherSchemas: number, accept?: 'accept'): Promise<Found> {
  const found: Found = { itself: [], other: [] }
  for (let step = 1; step <= MOST_STEPS; step++) {
    const folder = scratchFolder(t, 'crash-schema')
    const [killed, again] = [join(folder, 'killed'), join(folder, 'again')]
    cpSync(before, killed, { recursive: true })
    const args = ['--import=tsx', PROGRAM, killed, String(schemas), String(step), ...(accept ? [accept] : [])]
    const { signal, status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    if (signal !== 'SIGKILL' && status !== 0) throw new Error(`step ${step}: ${signal} ${status} ${stderr}`)
    cpSync(killed, again, { recursive: true })
    note(found.itself, await start(again, schemas))
    note(found.other, await start(killed, otherSchemas))
    if (signal === null) {
      t.ok(step > 5, `${step - 1} kills`)
      return found
    }
  }
  throw new Error('it never gets to its end')
}

t.test('an update', async (t) => {
  const folder = scratch(t)
  await start(folder, OLD, 'old')
  const { itself, other } = await killAtEachStep(t, folder, NEW, OLD)
  t.same(itself, [entries(NEW, 'old')])
  t.same(other, [entries(OLD, 'old')])
})

t.test('the way back', async (t) => {
  const folder = scratch(t)
  await start(folder, OLD, 'old')
  await start(folder, NEW, 'new')
  const { itself, other } = await killAtEachStep(t, folder, OLD, NEW)
  t.same(itself, [entries(OLD, 'old')])
  t.same(other, [entries(NEW, 'old', 'new')])
})

t.test('the way back, confirmed', async (t) => {
  const folder = scratch(t)
  await start(folder, OLD, 'old')
  await start(folder, NEW, 'new')
  const { itself, other } = await killAtEachStep(t, folder, OLD, NEW, 'accept')
  t.same(itself, [entries(OLD, 'old')])
  t.same(other, [entries(NEW, 'old', 'new'), entries(NEW, 'old')], 'the newer database until the copy is accepted')
})

t.test('the way forth again, where the old release was not confirmed', async (t) => {
  const folder = scratch(t)
  await start(folder, OLD, 'old')
  await start(folder, NEW, 'new')
  await start(folder, OLD, 'trial')
  const { itself, other } = await killAtEachStep(t, folder, NEW, OLD)
  t.same(itself, [entries(NEW, 'old', 'new')])
  t.same(other, [entries(OLD, 'old', 'trial')])
})

t.test('a first database', async (t) => {
  const { itself, other } = await killAtEachStep(t, scratch(t), NEW, OLD)
  t.same(itself, [[]])
  t.same(other, [[]], 'the old release can begin')
})

t.test('the way back to where there was no database', async (t) => {
  const folder = scratch(t)
  await start(folder, NEW, 'new')
  const { itself, other } = await killAtEachStep(t, folder, OLD, NEW, 'accept')
  t.same(itself, [[]])
  t.same(other, [entries(NEW, 'new'), []], 'the newer database until the new one is accepted')
})
