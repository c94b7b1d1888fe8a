import fc from 'fast-check'
import t from 'tap'
import {
  type Candidate,
  chooseForAge,
  chooseForSpace,
  freeBytesWanted,
  isDeletable,
  oldestFirst,
} from '../../../app/server/recording/retention-choice.ts'

const DAY = 86_400_000

const candidate: fc.Arbitrary<Omit<Candidate, 'id'>> = fc.record({
  state: fc.constantFrom('ready', 'defect', 'recording'),
  tag_markers: fc.nat(2),
  size: fc.nat(1000),
  timestamp_start: fc.nat(100).map((day) => day * DAY),
  time_synced: fc.boolean(),
  path: fc.constant('/media/data/recordings/x.mp4'),
})
/** Ids in the order of their making; the list itself by start, as the catalogue has it. */
const catalogue = fc
  .array(candidate, { maxLength: 40 })
  .map((rows) => rows.map((row, i): Candidate => ({ ...row, id: i + 1 })))
  .map((rows) => rows.sort((a, b) => a.timestamp_start - b.timestamp_start || a.id - b.id))

const sum = (rows: readonly Candidate[]) => rows.reduce((total, { size }) => total + size, 0)
const bytes = fc.integer({ min: 1, max: 30_000 })
const fresh = (id: number, over: Partial<Candidate> = {}): Candidate => ({
  id,
  state: 'ready',
  tag_markers: 0,
  size: 10,
  timestamp_start: id * DAY,
  time_synced: true,
  path: '/media/data/recordings/x.mp4',
  ...over,
})

t.test('never a tagged one, never a running one', async () => {
  await fc.assert(
    fc.asyncProperty(catalogue, bytes, async (rows, missing) => (await chooseForSpace(rows, missing)).every(isDeletable)),
  )
  await fc.assert(
    fc.asyncProperty(catalogue, fc.nat(120), async (rows, day) =>
      (await chooseForAge(rows, day * DAY, 1, 100)).every(isDeletable),
    ),
  )
})

t.test('enough and no more, or all that there is', async () => {
  await fc.assert(
    fc.asyncProperty(catalogue, bytes, async (rows, missing) => {
      const chosen = await chooseForSpace(rows, missing)
      const all = rows.filter((row) => isDeletable(row) && row.size > 0)
      if (sum(chosen) < missing) return chosen.length === all.length
      return sum(chosen.slice(0, -1)) < missing
    }),
  )
})

t.test('the oldest first', async () => {
  await fc.assert(
    fc.asyncProperty(catalogue, bytes, async (rows, missing) => {
      const chosen = new Set((await chooseForSpace(rows, missing)).map(({ id }) => id))
      const dated = rows.filter((row) => row.time_synced && isDeletable(row) && row.size > 0)
      const kept = dated.filter(({ id }) => !chosen.has(id))
      const gone = dated.filter(({ id }) => chosen.has(id))
      return gone.every((old) => kept.every((young) => old.timestamp_start <= young.timestamp_start))
    }),
  )
})

t.test('a recording from before the clock was set has the age of its neighbours, not of its date', async (t) => {
  const rows = [fresh(3, { timestamp_start: 0, time_synced: false }), fresh(1), fresh(2), fresh(4)]
  t.same(
    oldestFirst(rows).map(({ id }) => id),
    [1, 2, 3, 4],
  )
  t.same(
    (await chooseForSpace(rows, 25)).map(({ id }) => id),
    [1, 2, 3],
  )
  t.same(await chooseForAge(rows, 1000 * DAY, 999.5, 10), [], 'nor does its date make it too old')
})

t.test('what came back is as old as its return', async (t) => {
  const back = (id: number, restored_at: number | null, time_synced = true) =>
    fresh(id, { timestamp_start: 0, restored_at, time_synced })
  const rows = [back(1, 970 * DAY), back(2, 960 * DAY), back(3, null), back(4, 960 * DAY, false), fresh(5)]
  t.same(
    (await chooseForAge(rows, 1000 * DAY, 30, 10)).map(({ id }) => id),
    [2, 4, 5],
  )
})

t.test('what waits to be copied goes last', async (t) => {
  const rows = [1, 2, 3, 4].map((id) => fresh(id))
  const choose = async (missing: number) => (await chooseForSpace(rows, missing, (id) => id < 3)).map(({ id }) => id)
  t.same(await choose(20), [3, 4])
  t.same(await choose(25), [3, 4, 1])
})

t.test('age: those that began before the time', async () => {
  await fc.assert(
    fc.asyncProperty(catalogue, fc.nat(120), fc.integer({ min: 1, max: 60 }), async (rows, today, days) => {
      const chosen = new Set(await chooseForAge(rows, today * DAY, days, 1000))
      return rows.every(
        (row) => chosen.has(row) === (isDeletable(row) && row.time_synced && row.timestamp_start < today * DAY - days * DAY),
      )
    }),
  )
})

t.test('a small medium is not kept empty', (t) => {
  t.equal(freeBytesWanted(2 ** 31, 100 * 2 ** 30), 2 ** 31)
  t.equal(freeBytesWanted(2 ** 31, 64 * 2 ** 20), Math.floor(6.4 * 2 ** 20))
  t.equal(freeBytesWanted(0, 64 * 2 ** 20), 0)
  t.end()
})
