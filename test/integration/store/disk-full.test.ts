/** A disk that others fill: LMDB itself dies of the first commit that finds no space. */
import { closeSync, openSync, statfsSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
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

async function open(t: Test, disk: string): Promise<Opened> {
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(String(JSON.parse(line).msg)) })
  const told: boolean[] = []
  const store = new Store(join(disk, 'db'), log, MIGRATIONS, join(disk, 'db-backups'), (full) => told.push(full))
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

t.test('gaps that an older release has left in the file are filled', async (t) => {
  const disk = memoryDisk(t, '48m')
  const first = await open(t, disk)
  // Pages that are allocated and freed within one transaction are never written.
  first.rows.put(0, { text: 'kept' })
  await first.store.stop()
  const file = join(disk, 'db', 'camera.mdb')
  const { size } = statSync(file)
  const fd = openSync(file, 'r+')
  writeSync(fd, Buffer.alloc(4096), 0, 4096, size + 8 * MB)
  closeSync(fd)
  t.ok(statSync(file).blocks * 512 < statSync(file).size)
  const again = await open(t, disk)
  t.ok(statSync(file).blocks * 512 >= statSync(file).size)
  t.equal(again.rows.get(0)?.text, 'kept')
})
