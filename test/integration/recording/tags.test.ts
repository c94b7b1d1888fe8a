import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import pino from 'pino'
import t, { type Test } from 'tap'
import { Bus, type ServerEvent } from '../../../app/server/bus.ts'
import { Catalogue, Categories, Search, type Tag, Tags } from '../../../app/server/recording/index.ts'
import { Store } from '../../../app/server/store/index.ts'
import { scratchFolder } from '../../support/scratch.ts'

const log = pino({ level: 'silent' })

async function open(t: Test, folder = scratchFolder(t, 'tags')) {
  const store = new Store(join(folder, 'db'), log)
  await store.start()
  let open = true
  const close = async () => {
    if (open) await store.stop()
    open = false
  }
  t.teardown(close)
  const bus = new Bus()
  const events: ServerEvent[] = []
  bus.on('event', (event) => events.push(event))
  const catalogue = new Catalogue(store)
  const file = join(folder, 'persistent/tag-categories.json')
  const categories = new Categories(store, file, bus, log)
  categories.start()
  const tags = new Tags(store, catalogue, categories, bus)
  const record = (start: number, duration = 1000) =>
    catalogue.addMedia({
      media_type: 'video',
      encoding: 'mp4',
      filename: `r${start}.mp4`,
      path: `/media/data/recordings/r${start}.mp4`,
      size: start,
      camera: 0,
      timestamp_start: start,
      duration,
    })
  return { folder, file, store, bus, events, catalogue, categories, tags, record, close }
}

const mark = { category: 'event', title: 'door', note: '', timestamp: 5, createdBy: 'op' }

t.test('tags are set, changed and removed, and all are told', async (t) => {
  const { tags, record, catalogue, events } = await open(t)
  const row = record(1)
  const tag = tags.add(row, mark)
  t.same(tag, { ...mark, id: 1, category: 1 })
  tags.add(row, { ...mark, category: 'PERSON', timestamp: 0 })
  t.equal(catalogue.get(row.id)?.tag_markers, 2)
  t.same(
    tags.list(row.id).map(({ timestamp }) => timestamp),
    [0, 5],
    'in the order of the timeline',
  )
  t.match(tags.change(row.id, tag.id, { title: 'gate', category: 'note', timestamp: 1000 }), {
    title: 'gate',
    category: 5,
    note: '',
  })
  t.throws(() => tags.change(row.id, tag.id, { timestamp: 1001 }), { code: 'INVALID_REQUEST' }, 'behind the end')
  t.throws(() => tags.add(row, { ...mark, timestamp: 1001 }), { code: 'INVALID_REQUEST' })
  t.throws(() => tags.add(row, { ...mark, category: 'nothing' }), { code: 'INVALID_REQUEST', message: /event, person/ })
  t.throws(() => tags.change(row.id, 99, { title: 'x' }), { code: 'NOT_FOUND' })
  t.throws(() => tags.add({ id: 99 }, mark), { code: 'NOT_FOUND' })
  tags.remove(row.id, tag.id)
  t.equal(catalogue.get(row.id)?.tag_markers, 1)
  t.same(
    events.map(({ type, data }) => [type, data.tag, data.timestamp_ms]),
    [
      ['tagged', 1, 5],
      ['tagged', 2, 0],
      ['tag_changed', 1, 1000],
      ['untagged', 1, 1000],
    ],
  )
})

t.test('a running recording has no end that a tag could lie behind', async (t) => {
  const { tags, record, catalogue } = await open(t)
  const { id } = record(1, 0)
  catalogue.update(id, { state: 'recording' })
  t.equal(tags.add({ id }, { ...mark, timestamp: 60_000 }).timestamp, 60_000)
})

t.test('a category in use stays, unless its tags may move', async (t) => {
  const { tags, categories, record } = await open(t)
  const row = record(1)
  for (let n = 0; n < 450; n++) tags.add(row, { ...mark, timestamp: n })
  await t.rejects(tags.removeCategory(1), { code: 'CONFLICT' })
  await t.rejects(tags.removeCategory(1, 1), { code: 'INVALID_REQUEST' })
  await t.rejects(tags.removeCategory(1, 99), { code: 'NOT_FOUND' })
  await t.rejects(tags.removeCategory(99), { code: 'NOT_FOUND' })
  await tags.removeCategory(1, 2)
  t.ok(tags.list(row.id).every(({ category }) => category === 2))
  t.same(tags.recordingsIn(2, 1000), [row.id])
  t.equal(tags.recordingsIn(2, 449), null, 'more than asked for')
  t.same(tags.recordingsIn(1, 1000), [])
  t.equal(categories.byName('event'), undefined)
  await tags.removeCategory(3)
  t.equal(categories.create({ name: 'event', color: '#ABCDEF' }).id, 6, 'an id is never used again')
})

t.test('names are unique whatever their case, colours are one', async (t) => {
  const { categories, events, bus } = await open(t)
  const told: unknown[] = []
  bus.on('state', (state) => told.push(state))
  t.throws(() => categories.create({ name: 'Event ', color: '#000000' }), { code: 'CONFLICT' })
  t.throws(() => categories.create({ name: ' \u0007 ', color: '#000000' }), { code: 'INVALID_REQUEST' })
  t.throws(() => categories.update(2, { name: 'EVENT' }), { code: 'CONFLICT' })
  t.same(categories.update(1, { name: 'EVENT', color: '#ABCDEF' }), { id: 1, name: 'EVENT', color: '#abcdef' }, 'its own name')
  t.equal(categories.byName('eVeNt')?.id, 1)
  t.match(told, [{ key: 'tagCategories', value: [{ name: 'EVENT' }, {}, {}, {}, {}] }])
  t.match(events, [{ category: 'config', type: 'tag_category_changed', data: { name: 'EVENT' } }])
  for (let n = 0; n < 95; n++) categories.create({ name: `c${n}`, color: '#000000' })
  t.throws(() => categories.create({ name: 'one more', color: '#000000' }), { code: 'CONFLICT' })
})

t.test('categories outlive the database', async (t) => {
  const first = await open(t)
  first.categories.create({ name: 'parcel', color: '#123456' })
  await first.tags.removeCategory(2)
  const kept = first.categories.list()
  await first.close()
  rmSync(join(first.folder, 'db'), { recursive: true })

  const second = await open(t, first.folder)
  t.same(second.categories.list(), kept)
  t.equal(second.categories.create({ name: 'next', color: '#123456' }).id, 7)
  await second.close()

  // The database counts while it has any: a copy that is damaged or behind is written anew.
  writeFileSync(first.file, '{"categories": [{"id": "one"}]')
  const third = await open(t, first.folder)
  t.same(third.categories.list().length, 6)
  t.same(JSON.parse(readFileSync(first.file, 'utf8')).categories, third.categories.list())
  await third.close()

  rmSync(join(first.folder, 'db'), { recursive: true })
  writeFileSync(first.file, '{"categories": [{"id": 1, "name": "x", "color": "red"}]}')
  const fourth = await open(t, first.folder)
  t.equal(fourth.categories.list()[0]?.name, 'event', 'what a new device knows')
})

t.test('when the copy cannot be written, nothing has changed', async (t) => {
  const { categories, file, folder } = await open(t)
  rmSync(join(folder, 'persistent'), { recursive: true })
  writeFileSync(join(folder, 'persistent'), 'in the way')
  t.throws(() => categories.create({ name: 'parcel', color: '#123456' }))
  t.equal(categories.byName('parcel'), undefined)
  t.notOk(existsSync(file))
})

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('add' as const), recording: fc.nat(3), category: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('change' as const), pick: fc.nat(), category: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('forget' as const), recording: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('move' as const), from: fc.nat(2), to: fc.nat(2) }) },
)

t.test('tag_markers counts, and no tag is without its recording, whatever happens', async (t) => {
  const { tags, record, catalogue, categories, store } = await open(t)
  const names = ['person', 'vehicle', 'alarm']
  const named = (n: number) => names[n] ?? ''
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async (steps) => {
      const rows = [1, 2, 3, 4].map((start) => record(start).id)
      const model = new Map(rows.map((id) => [id, new Map<number, Tag>()]))
      const all = () => [...model].flatMap(([recording, marks]) => [...marks.values()].map((tag) => ({ recording, tag })))
      for (const s of steps) {
        if (s.kind === 'add') {
          const id = rows[s.recording] ?? 0
          const add = () => tags.add({ id }, { ...mark, category: named(s.category) })
          const marks = model.get(id)
          if (marks) {
            const tag = add()
            marks.set(tag.id, tag)
          } else t.throws(add, { code: 'NOT_FOUND' })
        } else if (s.kind === 'forget') {
          const id = rows[s.recording] ?? 0
          catalogue.remove(id)
          model.delete(id)
        } else if (s.kind === 'move') {
          const [from, to] = [categories.named(named(s.from)), categories.named(named(s.to))]
          if (from.id === to.id) continue
          await tags.removeCategory(from.id, to.id)
          for (const { recording, tag } of all()) {
            if (tag.category === from.id) model.get(recording)?.set(tag.id, { ...tag, category: to.id })
          }
          categories.create(from)
        } else {
          const chosen = all()[s.pick % Math.max(1, all().length)]
          if (!chosen) continue
          const { recording, tag } = chosen
          if (s.kind === 'change')
            model.get(recording)?.set(tag.id, tags.change(recording, tag.id, { category: named(s.category) }))
          else {
            tags.remove(recording, tag.id)
            model.get(recording)?.delete(tag.id)
          }
        }
      }
      for (const [id, marks] of model) {
        const expected = [...marks.values()].sort((a, b) => a.id - b.id)
        if (JSON.stringify(tags.list(id)) !== JSON.stringify(expected)) throw new Error(`tags of ${id}`)
        if (catalogue.get(id)?.tag_markers !== marks.size) throw new Error(`tag_markers of ${id}`)
        if (catalogue.list({ limit: 9, offset: 0, tagged: true }).rows.some((row) => row.id === id) !== marks.size > 0) {
          throw new Error(`tagged ${id}`)
        }
      }
      const filed = [...store.table<number[], true>('tags_by_category').keys()].map(String).sort()
      const wanted = all().map(({ recording, tag }) => `${tag.category},${recording},${tag.id}`)
      if (filed.join(' ') !== wanted.sort().join(' ')) throw new Error('categories')
      if (store.table('tags').count() !== all().length) throw new Error('orphans')
      for (const id of rows) catalogue.remove(id)
      return store.table('tags').count() === 0
    }),
    { numRuns: 25 },
  )
  t.pass()
})

t.test('search: text, tags, sizes; bounded, honest, and to be continued', async (t) => {
  const { tags, catalogue, record } = await open(t)
  for (let n = 1; n <= 60; n++) {
    const row = record(n * 10, 5 + (n % 7))
    if (n % 10 === 0) tags.add(row, { ...mark, title: `Parcel ${n}`, note: n === 30 ? 'left at the DOOR' : '' })
    if (n % 20 === 0) tags.add(row, { ...mark, category: 'person', title: 'somebody' })
  }
  const search = new Search(catalogue, tags)
  const page = { limit: 100, offset: 0 }
  const starts = async (query: Parameters<Search['find']>[0], by = search) =>
    (await by.find(query)).rows.map(({ timestamp_start }) => timestamp_start)
  t.same(await starts({ ...page, text: 'R200.MP4' }), [200])
  t.same(await starts({ ...page, text: 'the door' }), [300], 'the note of a tag')
  t.same(await starts({ ...page, tag: 'Person' }), [600, 400, 200], 'a category')
  t.same(await starts({ ...page, tag: 'person', sort: 'oldest', offset: 1 }), [400, 600])
  t.same(await starts({ ...page, tag: 'parcel 5' }), [500], 'a title')
  t.same(await starts({ ...page, tag: 'parcel', from: 250, to: 450 }), [400, 300])
  t.same(await starts({ ...page, tag: 'person', from: 250, to: 450, text: 'r4' }), [400])
  t.same(await starts({ ...page, tag: 'parcel', tagged: false }), [])
  t.same(await starts({ ...page, sort: 'largest', limit: 2 }), [600, 590])
  t.same(await starts({ ...page, sort: 'smallest', limit: 2, offset: 1 }), [20, 30])
  t.same(
    await starts({ ...page, sort: 'longest', limit: 3 }),
    [550, 480, 410].sort((a, b) => b - a),
  )
  t.same((await search.find({ ...page, text: 'r', limit: 7 })).total, 60)

  const little = new Search(catalogue, tags, 25)
  await t.rejects(little.find({ ...page, sort: 'largest' }), { code: 'INVALID_REQUEST', message: /60 entries/ })
  t.same(await starts({ ...page, sort: 'shortest', from: 590, limit: 1 }, little), [590])
  const first = await little.find({ ...page, text: '0.mp4', limit: 10 })
  t.match(first, { exact: false, total: 25 }, 'what was found so far')
  for (const sort of ['newest', 'oldest'] as const) {
    const found: number[] = []
    for (let after: (typeof first)['next'] | undefined; after !== null; ) {
      const more = await little.find({ ...page, sort, text: '00.mp4', limit: 2, ...(after ? { after } : {}) })
      found.push(...more.rows.map(({ timestamp_start }) => timestamp_start))
      after = more.next
    }
    const expected = [600, 500, 400, 300, 200, 100]
    t.same(found, sort === 'newest' ? expected : expected.reverse(), sort)
  }
  const many = await Promise.allSettled(Array.from({ length: 40 }, () => search.find({ ...page, text: 'r' })))
  t.equal(many.filter(({ status }) => status === 'fulfilled').length, 16)
  t.match(
    many.find(({ status }) => status === 'rejected'),
    { reason: { code: 'SERVICE_UNAVAILABLE' } },
  )
  t.same(await starts({ ...page, text: 'R200.MP4' }), [200], 'and it goes on')
})
