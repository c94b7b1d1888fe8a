/** A disk that others fill: LMDB itself dies of the first commit that finds no space. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, readFileSync, rmSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as immediate } from 'node:timers/promises'
import pino from 'pino'
import t, { type Test } from 'tap'
import { StartupError } from '../../../app/server/errors.ts'
import { MIGRATIONS, Store, type Table } from '../../../app/server/store/index.ts'
import { random } from '../../support/random.ts'
import { ext4Disk, fillDisk, freeDisk, memoryDisk } from '../../support/scratch.ts'

const MB = 1024 * 1024
const FULL = { code: 'INSUFFICIENT_STORAGE', status: 503 }

type Rows = Table<number, { readonly text: string }>

interface Opened {
  readonly store: Store
  readonly rows: Rows
  /** What the store has logged at levels that somebody reads. */
  readonly lines: string[]
  readonly told: boolean[]
}

async function open(t: Test, disk: string, migrations = MIGRATIONS): Promise<Opened> {
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(String(JSON.parse(line).msg)) })
  const told: boolean[] = []
  const store = new Store(join(disk, 'db'), log, migrations, join(disk, 'db-backups'), (full) => told.push(full))
  await store.start()
  t.teardown(() => store.stop())
  lines.length = 0
  return { store, rows: store.table('rows'), lines, told }
}

/** Writes until that is refused; returns how many rows there are then. */
function writeOn({ rows }: Opened, from: number, text: () => string): { next: number; error: unknown } {
  for (let next = from; ; next++) {
    try {
      rows.put(next, { text: text() })
    } catch (error) {
      return { next, error }
    }
  }
}

/** Each commit costs two writes to a real disk. */
for (const [name, rounds, make] of [
  ['in memory', 8, (t: Test) => memoryDisk(t, '96m')],
  ['ext4', 4, (t: Test) => ext4Disk(t, 96 * MB)],
] as const) {
  t.test(`${name}: writing is refused before the disk fails it, all else goes on, and it recovers by itself`, async (t) => {
    const disk = make(t)
    const opened = await open(t, disk)
    const { store, rows, lines, told } = opened
    const seed = Date.now() % 2 ** 32
    t.comment(`seed ${seed}`)
    const chance = random(seed)
    const text = () => 'x'.repeat(Math.floor(chance() * 200_000))
    let next = 0
    for (let round = 1; round <= rounds; round++) {
      fillDisk(disk)
      const refused = writeOn(opened, next, text)
      next = refused.next
      t.match(refused.error, FULL)
      t.throws(() => store.transaction(() => rows.put(next, { text: text() })), FULL)
      t.throws(() => store.transaction(() => store.nextId('things')), FULL)
      t.equal(rows.get(next), undefined, 'what was refused is not there')
      t.same(lines.splice(0), ['the disk is full: nothing is stored but the end of recordings, and deleting'], 'said once')
      await immediate()
      t.same(told.splice(0), [true])

      for (let n = 0; n < 20; n++) store.urgent(() => rows.put(0, { text: `${round} ${n}` }))
      t.equal(rows.get(0)?.text, `${round} 19`, 'the little that must be written is')
      const before = rows.count()
      const gone = [...rows.keys()].filter((id) => id > 0 && chance() < 0.6)
      for (const [n, id] of gone.entries()) {
        if (n % 3 === 0) rows.remove(id)
        else store.transaction(() => rows.remove(id))
      }
      t.equal(rows.count(), before - gone.length, 'deleting works, reading too')

      freeDisk(disk)
      for (let n = 0; n < 20; n++) rows.put(next++, { text: text() })
      t.same(lines.splice(0), ['there is space on the disk again: everything is stored'], 'said once')
      await immediate()
      t.same(told.splice(0), [false])
    }
    const { bavail, bsize } = statfsSync(disk)
    t.ok(bavail * bsize > MB, 'the database has not taken the disk for itself')
  })
}

t.test('a server that starts with a full disk reads, deletes and writes on as before', async (t) => {
  const disk = memoryDisk(t, '48m')
  const first = await open(t, disk)
  first.rows.put(1, { text: 'kept' })
  first.rows.put(2, { text: 'gone' })
  fillDisk(disk)
  const { next } = writeOn(first, 3, () => 'x'.repeat(5000))
  await first.store.stop()
  const again = await open(t, disk)
  t.equal(again.rows.get(1)?.text, 'kept')
  t.throws(() => again.rows.put(next, { text: 'x'.repeat(5000) }), FULL)
  again.rows.remove(2)
  t.equal(again.rows.has(2), false)
  freeDisk(disk)
  again.rows.put(next, { text: 'x' })
  t.ok(again.rows.has(next))
})

t.test('a release that comes back takes its database back also on a full disk', async (t) => {
  const disk = memoryDisk(t, '64m')
  const newest = { version: (MIGRATIONS.at(-1)?.version ?? 0) + 1, summary: 'newer', run: () => {} }
  const old = await open(t, disk)
  old.rows.put(1, { text: 'old' })
  await old.store.stop()
  const newer = await open(t, disk, [...MIGRATIONS, newest])
  newer.rows.put(1, { text: 'newer' })
  await newer.store.stop()

  const trial = await open(t, disk)
  t.equal(trial.rows.get(1)?.text, 'old')
  fillDisk(disk)
  writeOn(trial, 2, () => 'x'.repeat(5000))
  await trial.store.stop()
  fillDisk(disk)

  const again = await open(t, disk, [...MIGRATIONS, newest])
  t.equal(again.rows.get(1)?.text, 'newer')
  t.match(again.store.putBack, { origin: 'replaced' })
})

t.test('room that was given up comes back without anybody writing', async (t) => {
  const disk = memoryDisk(t, '48m')
  const opened = await open(t, disk)
  fillDisk(disk)
  writeOn(opened, 0, () => 'x'.repeat(5000))
  const file = join(disk, 'db', 'camera.mdb')
  const before = statSync(file).size
  freeDisk(disk)
  while (opened.told.length < 2) await new Promise((resolve) => setTimeout(resolve, 20))
  t.same(opened.told, [true, false])
  t.ok(statSync(file).size > before)
})

t.test('a large transaction is refused as a whole where it might not fit', async (t) => {
  const disk = memoryDisk(t, '48m')
  const { store, rows } = await open(t, disk)
  for (let n = 0; n < 500; n++) rows.put(n, { text: 'x'.repeat(5000) })
  fillDisk(disk)
  const all = () => {
    for (let n = 0; n < 2000; n++) rows.put(n, { text: 'y'.repeat(5000) })
  }
  t.throws(() => store.transaction(all), FULL)
  t.throws(() => store.urgent(all), FULL)
  t.equal(rows.count(), 500)
  t.equal(rows.get(0)?.text[0], 'x')
  store.transaction(() => rows.clear())
  t.equal(rows.count(), 0, 'all of a table can go')
})

t.test('what a large transaction needed is given back', async (t) => {
  const disk = memoryDisk(t, '96m')
  const { rows } = await open(t, disk)
  const file = join(disk, 'db', 'camera.mdb')
  const before = statSync(file).size
  rows.put(1, { text: 'x'.repeat(10 * MB) })
  t.ok(statSync(file).size > before + 20 * MB, 'more than was written may have been needed')
  await immediate()
  t.ok(statSync(file).size < before + 11 * MB)
  t.ok(statSync(file).size > before + 9 * MB, 'the usual room is there')
  rows.put(2, { text: 'y'.repeat(10 * MB) })
  t.equal(rows.get(1)?.text.length, 10 * MB)
  t.equal(rows.get(2)?.text.at(-1), 'y')
})

t.test('what is behind the end that was known is not written over', async (t) => {
  const disk = memoryDisk(t, '96m')
  const { store, rows } = await open(t, disk)
  const file = join(disk, 'db', 'camera.mdb')
  const { size } = statSync(file)
  const pages = Buffer.alloc(MB, 'page')
  appendFileSync(file, pages)
  t.throws(() => {
    store.transaction(() => {
      rows.put(1, { text: 'x'.repeat(10 * MB) })
      throw new Error('changed my mind')
    })
  }, /changed my mind/)
  t.ok(statSync(file).size > size + 2 * MB)
  t.ok(
    readFileSync(file)
      .subarray(size, size + MB)
      .equals(pages),
  )
})

t.test('what is told of a full disk may write, and fail', async (t) => {
  const disk = memoryDisk(t, '48m')
  const log = pino({ level: 'silent' })
  let told = 0
  const store: Store = new Store(join(disk, 'db'), log, MIGRATIONS, join(disk, 'db-backups'), () => {
    told++
    store.transaction(() => store.table<string, string>('told').put('full', 'yes'))
  })
  await store.start()
  t.teardown(() => store.stop())
  fillDisk(disk)
  const rows: Rows = store.table('rows')
  t.throws(() => {
    for (let n = 0; ; n++) store.transaction(() => rows.put(n, { text: 'x'.repeat(100_000) }))
  }, FULL)
  t.equal(told, 0, 'nobody is told within a transaction')
  await immediate()
  t.equal(told, 1)
})

/** A gap in the room behind what is in use: where pages were given up before they were written. */
async function withGap(t: Test, disk: string): Promise<string> {
  const first = await open(t, disk)
  first.rows.put(0, { text: 'kept' })
  await first.store.stop()
  const file = join(disk, 'db', 'camera.mdb')
  execFileSync('fallocate', ['--punch-hole', '--offset', `${2 * MB}`, '--length', `${MB}`, file])
  t.ok(hasGap(file))
  return file
}

function hasGap(file: string): boolean {
  const { blocks, size } = statSync(file)
  return blocks * 512 < size
}

t.test('gaps that an older release has left in the file are filled', async (t) => {
  const disk = memoryDisk(t, '48m')
  const file = await withGap(t, disk)
  const again = await open(t, disk)
  t.notOk(hasGap(file))
  t.equal(again.rows.get(0)?.text, 'kept')
})

t.test('gaps that a full disk cannot fill are no room; they are filled when it can', async (t) => {
  const disk = memoryDisk(t, '48m')
  const file = await withGap(t, disk)
  fillDisk(disk)
  const { store, rows, told } = await open(t, disk)
  t.equal(rows.get(0)?.text, 'kept')
  t.throws(() => rows.put(1, { text: 'x' }), FULL)
  // 2 MB of the file are whole, but the margin of a transaction must fit in as well.
  t.throws(() => store.urgent(() => rows.put(1, { text: 'x'.repeat(MB) })), FULL)
  t.ok(hasGap(file))
  freeDisk(disk)
  while (told.length < 2) await new Promise((resolve) => setTimeout(resolve, 20))
  t.same(told, [true, false])
  t.notOk(hasGap(file))
  rows.put(1, { text: 'x' })
})

t.test('a disk without a block for the table of readers is named', async (t) => {
  const disk = memoryDisk(t, '48m')
  const { store } = await open(t, disk)
  await store.stop()
  rmSync(join(disk, 'db', 'camera.mdb-lock'))
  fillDisk(disk)
  const again = new Store(join(disk, 'db'), pino({ level: 'silent' }))
  const error: unknown = await again.start().catch((refused) => refused)
  t.ok(error instanceof StartupError)
  t.match(error, { message: /camera\.mdb-lock: ENOSPC/ })
})
