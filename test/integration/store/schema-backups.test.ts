import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Store } from '../../../app/server/store/index.ts'
import { SchemaBackups } from '../../../app/server/store/schema-backups.ts'
import { addEntries, entriesOf, release } from '../../support/releases.ts'
import { scratchFolder } from '../../support/scratch.ts'

function scratch(t: Test): string {
  const folder = scratchFolder(t, 'schema')
  return folder
}

/** Starts a release on the folder, works with it, stops it; it is never confirmed. */
async function tryOut(folder: string, schemas: number, work: (store: Store) => void = () => {}): Promise<void> {
  const store = release(folder, schemas)
  await store.start()
  try {
    work(store)
  } finally {
    await store.stop()
  }
}

/** The same, and it is confirmed. */
async function run(folder: string, schemas: number, work: (store: Store) => void = () => {}): Promise<void> {
  await tryOut(folder, schemas, (store) => {
    work(store)
    store.accept()
  })
}

function textsOf(store: Store): string[] {
  return entriesOf(store).map(({ text }) => text)
}

function kept(folder: string): string[] {
  return readdirSync(join(folder, 'db-backups'))
    .map((name) => name.replace(/\.[0-9a-f]{64}\./, '.'))
    .sort()
}

/** The one copy there is. */
function copyIn(folder: string): string {
  const [name] = readdirSync(join(folder, 'db-backups')).filter((one) => one.startsWith('schema-'))
  return join(folder, 'db-backups', name ?? '')
}

t.test('an update and back: the old release finds its data as it left them, the newer ones are put aside', async (t) => {
  const folder = scratch(t)
  await run(folder, 1, (store) => addEntries(store, 3, 'old'))
  await run(folder, 3, (store) => {
    t.equal(store.schemaVersion, 3)
    t.same(entriesOf(store), Array(3).fill({ schema: 3, text: 'old' }))
    addEntries(store, 2, 'new')
    t.equal(store.putBack, undefined)
  })
  t.same(kept(folder), ['schema-1.mdb'])
  t.equal(statSync(copyIn(folder)).mode & 0o777, 0o600)
  t.equal(statSync(join(folder, 'db-backups')).mode & 0o777, 0o700)

  await run(folder, 1, (store) => {
    t.equal(store.schemaVersion, 1)
    t.same(entriesOf(store), Array(3).fill({ schema: 1, text: 'old' }))
    t.match(store.putBack, { origin: 'copy', schema: 1, copied: /^20/ })
    addEntries(store, 1, 'later')
  })
  t.same(kept(folder), ['aside-3.mdb'])
  await run(folder, 1, (store) => {
    t.match(store.putBack, { schema: 1 }, 'told until it is settled')
    store.putBackSettled('files')
    t.match(store.putBack, { schema: 1, settled: ['files'] })
    store.putBackSettled('ages')
    t.equal(store.putBack, undefined)
  })
  await run(folder, 1, (store) => {
    t.equal(store.putBack, undefined)
    t.equal(entriesOf(store).length, 4, 'what was written after that stays')
  })

  await run(folder, 3, (store) =>
    t.same(entriesOf(store), [...Array(3).fill({ schema: 3, text: 'old' }), { schema: 3, text: 'later' }]),
  )
  await run(folder, 1, (store) => t.equal(entriesOf(store).length, 4, 'a second way back'))
  t.same(kept(folder), ['aside-3.mdb'])
})

t.test('two copies and one database put aside are kept', async (t) => {
  const folder = scratch(t)
  for (const schemas of [1, 2, 3, 4]) await run(folder, schemas, (store) => addEntries(store, 1, `by ${schemas}`))
  t.same(kept(folder), ['schema-2.mdb', 'schema-3.mdb'])
  await run(folder, 3)
  await run(folder, 2)
  t.same(kept(folder), ['aside-3.mdb'])
  await run(folder, 5)
  t.same(kept(folder), ['aside-3.mdb', 'schema-2.mdb'])
  await run(folder, 2, (store) =>
    t.same(
      entriesOf(store).map(({ text }) => text),
      ['by 1', 'by 2'],
    ),
  )
  t.same(kept(folder), ['aside-5.mdb'])
})

t.test('copies of updates that were taken back go with the next update', async (t) => {
  const folder = scratch(t)
  for (const schemas of [1, 2, 3]) await run(folder, schemas)
  await run(folder, 1)
  t.same(kept(folder), ['aside-3.mdb', 'schema-2.mdb'])
  await run(folder, 3)
  t.same(kept(folder), ['aside-3.mdb', 'schema-1.mdb'])
})

t.test('all migrations of an update or none', async (t) => {
  const folder = scratch(t)
  await run(folder, 1, (store) => addEntries(store, 3, 'old'))
  const failing = release(folder, 2, {
    last: {
      version: 3,
      summary: 'fails',
      run: () => {
        throw new Error('half way')
      },
    },
  })
  await t.rejects(failing.start(), { message: 'half way' })
  await failing.stop()
  await run(folder, 1, (store) => {
    t.equal(store.schemaVersion, 1)
    t.same(entriesOf(store), Array(3).fill({ schema: 1, text: 'old' }))
    t.equal(store.putBack, undefined, 'there was nothing to go back over')
  })
})

t.test('without its own copy an old release does not start, and changes nothing', async (t) => {
  const folder = scratch(t)
  await run(folder, 2, (store) => addEntries(store, 3, 'theirs'))
  const refused = {
    message:
      'the database has schema version 2, this release knows 1 at most, and there is no copy from before: start the newer release again, ' +
      'or reset the device to its factory state, which removes all settings and accounts',
  }
  await t.rejects(run(folder, 1), refused)
  mkdirSync(join(folder, 'db-backups'))
  await t.rejects(run(folder, 1), refused)
  await run(folder, 2, (store) => t.equal(entriesOf(store).length, 3))
})

t.test('a database that began with the release on trial: the old one begins anew, until one of them is confirmed', async (t) => {
  const folder = scratch(t)
  await tryOut(folder, 3, (store) => addEntries(store, 2, 'trial'))
  await tryOut(folder, 1, (store) => {
    t.equal(store.schemaVersion, 1)
    t.same(entriesOf(store), [])
    t.match(store.putBack, { origin: 'new', schema: 1, copied: /^20/ })
    t.notOk(store.isAccepted)
    addEntries(store, 1, 'anew')
  })
  t.equal(statSync(join(folder, 'db/camera.mdb')).mode & 0o777, 0o600)
  await tryOut(folder, 3, (store) => t.same(textsOf(store), ['trial', 'trial'], 'nothing of it is lost'))
  await run(folder, 1, (store) => t.same(textsOf(store), ['anew']))
  t.same(kept(folder), ['aside-3.mdb'])
  await run(folder, 3, (store) => {
    t.same(textsOf(store), ['anew'])
    store.accept()
    t.ok(store.isAccepted)
  })
})

t.test('nobody begins anew on a database that was accepted once, nor on one of several schemas', async (t) => {
  const refused = { message: /there is no copy from before/ }
  const folder = scratch(t)
  await run(folder, 2)
  await t.rejects(tryOut(folder, 1), refused)
  await tryOut(folder, 3)
  await t.rejects(tryOut(folder, 1), refused, 'a newer one changes nothing in that')
  const other = scratch(t)
  await tryOut(other, 2)
  await tryOut(other, 4)
  await tryOut(other, 2)
  await t.rejects(tryOut(other, 1), refused, 'the copy is not what began')
})

t.test('an old release that is given up before it is confirmed: the newer one takes its database back', async (t) => {
  const folder = scratch(t)
  await run(folder, 2, (store) => addEntries(store, 1, 'long ago'))
  await run(folder, 3, (store) => addEntries(store, 1, 'by 3'))
  await run(folder, 4, (store) => addEntries(store, 1, 'months of work'))
  t.same(kept(folder), ['schema-2.mdb', 'schema-3.mdb'])
  for (const times of [1, 2]) {
    await tryOut(folder, 2, (store) => {
      t.match(store.putBack, { origin: 'copy', schema: 2 })
      t.notOk(store.isAccepted)
      addEntries(store, 1, `trial ${times}`)
    })
    t.same(kept(folder), ['replaced-4.mdb', 'schema-3.mdb'])
    await tryOut(folder, 4, (store) => {
      t.match(store.putBack, { origin: 'replaced', schema: 4, copied: /^20/ })
      t.same(textsOf(store), ['long ago', 'by 3', 'months of work'])
      t.ok(store.isAccepted)
    })
    t.same(kept(folder), ['schema-2.mdb', 'schema-3.mdb'], 'the copies are whole again')
  }
  await tryOut(folder, 2, (store) => t.same(textsOf(store), ['long ago', 'trial 1', 'trial 2'], 'they go on where they were'))
  await tryOut(folder, 5, (store) => t.equal(textsOf(store).length, 3, 'a still newer one takes it back too'))
  t.same(kept(folder), ['schema-3.mdb', 'schema-4.mdb'])
})

t.test('what stands in for another does not take its place as the one to go back to', async (t) => {
  const folder = scratch(t)
  await run(folder, 1)
  await run(folder, 2)
  await run(folder, 4, (store) => addEntries(store, 1, 'accepted'))
  await tryOut(folder, 2, (store) => addEntries(store, 1, 'trial'))
  await tryOut(folder, 3)
  t.same(kept(folder), ['replaced-4.mdb', 'schema-1.mdb', 'schema-2.mdb'])
  await tryOut(folder, 1)
  t.same(kept(folder), ['aside-3.mdb', 'replaced-4.mdb', 'schema-2.mdb'])
  await tryOut(folder, 4, (store) => t.same(textsOf(store), ['accepted']))
  t.same(kept(folder), ['aside-3.mdb', 'schema-1.mdb', 'schema-2.mdb'])
})

t.test('a database that begins stands in for nothing', async (t) => {
  const folder = scratch(t)
  await run(folder, 1)
  await run(folder, 2, (store) => addEntries(store, 1, 'gone'))
  await tryOut(folder, 1)
  rmSync(join(folder, 'db'), { recursive: true })
  await tryOut(folder, 2, (store) => t.same(entriesOf(store), []))
})

t.test('a damaged copy does not take the place of the database', async (t) => {
  const folder = scratch(t)
  await run(folder, 1, (store) => addEntries(store, 3, 'old'))
  await run(folder, 3, (store) => addEntries(store, 2, 'new'))
  const copy = copyIn(folder)
  const whole = readFileSync(copy)
  const refused = {
    message: /copy from before is damaged \(.*schema-1\.[0-9a-f]+\.mdb\): start the newer release again, or reset/,
  }
  for (const size of [0, 100, 8192]) {
    truncateSync(copy, size)
    await t.rejects(run(folder, 1), refused)
  }
  writeFileSync(copy, readFileSync(join(folder, 'db/camera.mdb')))
  await t.rejects(run(folder, 1), refused)
  await run(folder, 3, (store) => t.equal(entriesOf(store).length, 5))
  writeFileSync(copy, whole)
  await run(folder, 1, (store) => t.equal(entriesOf(store).length, 3))
})

t.test('where no copy can be kept, nothing is migrated, and the old release starts as before', async (t) => {
  const folder = scratch(t)
  await run(folder, 1, (store) => addEntries(store, 3, 'old'))
  writeFileSync(join(folder, 'db-backups'), 'in the way')
  await t.rejects(run(folder, 2), { message: /cannot be copied before its schema 1 is changed/ })
  await run(folder, 1, (store) => t.same(entriesOf(store), Array(3).fill({ schema: 1, text: 'old' })))
})

t.test('without space for a copy, older ones go first; then it is refused before anything is written', async (t) => {
  const folder = scratch(t)
  const names = ['aside-9.mdb', `schema-1.${'0'.repeat(64)}.mdb`, `schema-2.${'1'.repeat(64)}.mdb`]
  for (const name of names) writeFileSync(join(folder, name), name)
  let copied = false
  const copy = async () => {
    copied = true
  }
  await t.rejects(new SchemaBackups(folder).keep(3, 2 ** 60, copy), { message: /it needs \d+ bytes, \d+ are free/ })
  t.notOk(copied)
  t.same(
    names.filter((name) => existsSync(join(folder, name))),
    [],
  )
})
