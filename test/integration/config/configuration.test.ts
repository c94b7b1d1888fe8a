import fc from 'fast-check'
import pino from 'pino'
import t, { type Test } from 'tap'
import { actingAs } from '../../../app/server/actor.ts'
import { Bus } from '../../../app/server/bus.ts'
import { Configuration, type PartialSections, SECTION_NAMES, SECTIONS } from '../../../app/server/config/index.ts'
import { ApiError, UnsupportedSetting } from '../../../app/server/errors.ts'
import { Store } from '../../../app/server/store/index.ts'
import { scratchFolder } from '../../support/scratch.ts'

const silent = pino({ level: 'silent' })
const anySection = () => {}

async function open(t: Test, given: PartialSections = {}, folder = scratchFolder(t, 'config')) {
  const store = new Store(folder, silent)
  await store.start()
  const bus = new Bus()
  const configuration = new Configuration(store, bus, silent, given)
  configuration.start()
  let open = true
  const close = async () => {
    if (!open) return
    open = false
    await configuration.stop()
    await store.stop()
  }
  t.teardown(close)
  return { folder, store, bus, configuration, close }
}

t.test('every field has a default and a description; an option is the default', async (t) => {
  const { configuration } = await open(t, { security: { session_timeout: 60 } })
  for (const section of SECTION_NAMES) {
    for (const [name, schema] of Object.entries(SECTIONS[section].properties)) {
      t.ok('default' in schema && schema.description, `${section}.${name}`)
    }
  }
  t.match(configuration.all(), {
    network: { rtsp_max_connections: 10 },
    camera: { default_resolution: '1280x720', default_framerate: 30, auto_exposure: true, pre_roll: false },
    storage: { retention_days: 30, start_margin_bytes: 1_000_000_000, quota_bytes: 0 },
    security: { session_timeout: 60, rate_limits: 'device' },
    logging: { level: 'info' },
  })
  t.throws(() => Object.assign(configuration.get('security').cors_origins, ['x']), 'nobody changes it in passing')
})

t.test('replacing returns to defaults what is not named, merging keeps it; both are told and survive', async (t) => {
  const { configuration, bus, close, folder } = await open(t)
  const heard: unknown[] = []
  bus.on('config-changed', (change) => heard.push(change))
  await configuration.replace('storage', { retention_days: 7 })
  await configuration.merge('storage', { quota_bytes: 5 })
  t.match(configuration.get('storage'), { retention_days: 7, quota_bytes: 5 })
  t.match(heard, [
    { section: 'storage', value: { retention_days: 7, quota_bytes: 0 }, previous: { retention_days: 30 } },
    { section: 'storage', value: { retention_days: 7, quota_bytes: 5 }, previous: { retention_days: 7 } },
  ])
  await configuration.merge('storage', { quota_bytes: 5 })
  t.equal(heard.length, 2, 'nothing changed, nothing told')
  await close()
  const again = await open(t, {}, folder)
  t.match(again.configuration.get('storage'), { retention_days: 7, quota_bytes: 5 })
})

t.test('a wrong value is refused by name, and nothing changes', async (t) => {
  const { configuration } = await open(t)
  const wrong: [Parameters<Configuration['merge']>[0], unknown, string][] = [
    ['storage', { retention_days: -1 }, 'body.storage.retention_days'],
    ['storage', { retention_days: 1.5 }, 'body.storage.retention_days'],
    ['storage', { surprise: 1 }, 'body.storage.surprise'],
    ['storage', { __proto__: null, constructor: 1 }, 'body.storage.constructor'],
    ['storage', 7, 'body.storage'],
    ['storage', null, 'body.storage'],
    ['security', { cors_origins: ['https://a.example', 'nonsense'] }, 'body.security.cors_origins.1'],
    ['security', { rate_limits: 'none' }, 'body.security.rate_limits'],
    ['logging', { components: { http: 'loud' } }, 'body.logging.components.http'],
  ]
  for (const [section, fields, details] of wrong) {
    await t.rejects(configuration.merge(section, fields), { code: 'INVALID_REQUEST', details }, details)
    await t.rejects(configuration.replace(section, fields), { code: 'INVALID_REQUEST', details }, details)
  }
  t.equal(configuration.history(10, 0).total, 0)
})

t.test('a guard holds what it refuses for until the change is stored', async (t) => {
  const { configuration } = await open(t)
  const told: string[] = []
  configuration.guard(
    () => told.push('checked'),
    async (change) => {
      told.push('held')
      try {
        return await change()
      } finally {
        told.push(`released at ${configuration.get('network').rtsp_max_connections}`)
      }
    },
  )
  configuration.use('network', {
    apply: async () => {
      await new Promise(setImmediate)
      told.push('acted')
    },
  })
  await configuration.merge('network', { rtsp_max_connections: 20 })
  t.same(told, ['checked', 'held', 'acted', 'released at 20'])
  told.length = 0
  await configuration.undo(undefined, anySection)
  t.same(told, ['checked', 'held', 'acted', 'released at 10'])
})

t.test('changes at the same time all count', async (t) => {
  const { configuration } = await open(t)
  await Promise.all([
    ...Array.from({ length: 20 }, (_, i) => configuration.merge('storage', { retention_days: i + 1 })),
    configuration.merge('storage', { quota_bytes: 9 }),
    configuration.merge('storage', { start_margin_bytes: 8 }),
  ])
  t.match(configuration.get('storage'), { retention_days: 20, quota_bytes: 9, start_margin_bytes: 8 })
})

t.test('what refuses or fails leaves everything as it was', async (t) => {
  const { configuration } = await open(t)
  const acted: number[] = []
  let fail = true
  configuration.use('network', { apply: ({ rtsp_max_connections }) => void acted.push(rtsp_max_connections) })
  configuration.use('network', {
    apply: async ({ rtsp_max_connections }) => {
      await Promise.resolve()
      if (fail && rtsp_max_connections === 20) throw new UnsupportedSetting('rtsp_max_connections', 'too many')
    },
  })
  await t.rejects(configuration.merge('network', { rtsp_max_connections: 20 }), { code: 'UNSUPPORTED_SETTING' })
  t.same(acted, [20, 10], 'taken back')
  t.equal(configuration.get('network').rtsp_max_connections, 10)
  fail = false
  await configuration.merge('network', { rtsp_max_connections: 20 })
  t.equal(configuration.get('network').rtsp_max_connections, 20)

  configuration.guard(() => {
    throw new ApiError('RECORDING_IN_PROGRESS', 'no')
  })
  await t.rejects(configuration.merge('storage', { retention_days: 1 }), { code: 'RECORDING_IN_PROGRESS' })
  await t.rejects(configuration.undo(undefined, anySection), { code: 'RECORDING_IN_PROGRESS' })
  t.equal(configuration.history(10, 0).total, 1)
})

t.test('a listener that fails does not undo the change', async (t) => {
  const { configuration, bus } = await open(t)
  bus.on('config-changed', () => {
    throw new Error('listener')
  })
  t.match(await configuration.merge('storage', { retention_days: 1 }), { retention_days: 1 })
})

t.test('the history says who, from where, what before and after; undo goes back one by one', async (t) => {
  const { configuration } = await open(t)
  await actingAs({ username: 'eve', address: '10.0.0.9' }, async () => {
    await configuration.merge('storage', { retention_days: 1 })
    await configuration.merge('camera', { pre_roll: true })
    await configuration.merge('storage', { retention_days: 2 })
  })
  t.match(configuration.history(1, 0), {
    total: 3,
    changes: [
      {
        id: 3,
        section: 'storage',
        username: 'eve',
        address: '10.0.0.9',
        before: { retention_days: 1 },
        after: { retention_days: 2 },
        undoes: null,
        undone_by: null,
      },
    ],
  })
  t.match(await configuration.undo(undefined, anySection), { id: 4, undoes: 3, after: { retention_days: 1 } })
  t.match(await configuration.undo('storage', anySection), { id: 5, undoes: 1, after: { retention_days: 30 } })
  t.match(await configuration.undo(undefined, anySection), { id: 6, undoes: 2, after: { pre_roll: false } })
  await t.rejects(configuration.undo(undefined, anySection), { code: 'CONFLICT' })
  t.match(configuration.history(1, 5), { changes: [{ id: 1, undone_by: 5 }] })
})

t.test('stored values of another release: what fits is kept, the rest takes its default', async (t) => {
  const { configuration, store, folder, close } = await open(t)
  await configuration.merge('storage', { retention_days: 3, quota_bytes: 4 })
  const table = store.table<string, unknown>('config')
  table.put('storage', { version: 7, value: { retention_days: 'many', quota_bytes: 4, from_the_future: 1 } })
  table.put('camera', { nonsense: true })
  await close()
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  const reopened = new Store(folder, silent)
  await reopened.start()
  t.teardown(() => reopened.stop())
  const again = new Configuration(reopened, new Bus(), log)
  again.start()
  t.match(again.get('storage'), { retention_days: 30, quota_bytes: 4 })
  t.match(
    lines.map((line) => JSON.parse(line)),
    [{ section: 'storage', fields: ['retention_days', 'from_the_future'] }],
  )
})

t.test('property: any sequence of changes and undos keeps what the history promises', async (t) => {
  const { configuration } = await open(t)
  const field = fc.record(
    { retention_days: fc.integer({ min: -2, max: 4 }), quota_bytes: fc.integer({ min: 0, max: 2 }) },
    { requiredKeys: [] },
  )
  const step = fc.oneof(
    fc.record({ kind: fc.constant('merge' as const), fields: field }),
    fc.record({ kind: fc.constant('replace' as const), fields: field }),
    fc.constant({ kind: 'undo' as const }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      // Each run starts where nothing is left to undo.
      for (;;) if (!(await configuration.undo(undefined, anySection).catch(() => null))) break
      const initial = configuration.get('storage')
      const stack = [initial]
      for (const { kind, ...rest } of steps) {
        const before = configuration.get('storage')
        if (kind === 'undo') {
          const undone = await configuration.undo(undefined, anySection).catch(() => null)
          if ((undone === null) !== (stack.length === 1)) return false
          if (undone) stack.pop()
        } else {
          const fields = 'fields' in rest ? rest.fields : {}
          const wrong = (fields.retention_days ?? 0) < 0
          const expected = { ...(kind === 'merge' ? before : initial), ...fields }
          const result = await configuration[kind]('storage', fields).catch(() => null)
          if ((result === null) !== wrong) return false
          if (result && JSON.stringify(expected) !== JSON.stringify(before)) stack.push(result)
        }
        if (JSON.stringify(configuration.get('storage')) !== JSON.stringify(stack.at(-1))) return false
        const { changes, total } = configuration.history(1000, 0)
        if (total > 200 || changes.length !== total) return false
        if (total > 0 && JSON.stringify(changes[0]?.after) !== JSON.stringify(configuration.get('storage'))) return false
      }
      return true
    }),
    { numRuns: 60 },
  )
  t.ok(configuration.history(1, 0).total <= 200)
})
