import { statSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import { Store } from '../../../app/server/store/index.ts'
import { scratchFolder } from '../../support/scratch.ts'

const log = pino({ level: 'silent' })

t.test('what was written is there after a reopen, in key order', async (t) => {
  const path = scratchFolder(t, 'store')
  const first = new Store(path, log)
  await first.start()
  const times = first.table<[number, number], { name: string }>('times')
  times.put([20, 1], { name: 'late' })
  times.put([3, 2], { name: 'early' })
  await first.stop()
  const second = new Store(path, log)
  await second.start()
  t.teardown(() => second.stop())
  const read = second.table<[number, number], { name: string }>('times')
  t.same(
    [...read.range()].map(({ value }) => value.name),
    ['early', 'late'],
  )
  t.equal(read.count(), 2)
  t.equal(statSync(join(path, 'camera.mdb')).mode & 0o077, 0, 'nobody else may read the database')
})

t.test('a transaction that throws leaves nothing behind', async (t) => {
  const store = new Store(scratchFolder(t, 'store'), log)
  await store.start()
  t.teardown(() => store.stop())
  const table = store.table<string, number>('numbers')
  t.throws(() =>
    store.transaction(() => {
      table.put('a', 1)
      store.nextId('things')
      throw new Error('half way')
    }),
  )
  t.equal(table.get('a'), undefined)
  t.equal(
    store.transaction(() => store.nextId('things')),
    1,
    'the sequence was rolled back too',
  )
})

t.test('a transaction inside another is a part of it, also when somebody catches what it throws', async (t) => {
  const store = new Store(scratchFolder(t, 'store'), log)
  await store.start()
  t.teardown(() => store.stop())
  const table = store.table<string, number>('numbers')
  const both = (inner: () => void) => () =>
    store.transaction(() => {
      table.put('outer', 1)
      try {
        store.transaction(inner)
      } catch {}
    })
  const failing = () => {
    table.put('inner', 1)
    throw new Error('half way')
  }
  t.throws(both(failing), { message: 'half way' })
  t.same([table.get('outer'), table.get('inner')], [undefined, undefined])
  both(() => table.put('inner', 2))()
  t.same([table.get('outer'), table.get('inner')], [1, 2])
})
