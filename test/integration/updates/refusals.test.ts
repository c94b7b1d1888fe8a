/** What this machine cannot be brought to for a test: a battery that is nearly empty, a disk that is full. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Bus } from '../../../app/server/bus.ts'
import type { JobContext, Jobs } from '../../../app/server/jobs/index.ts'
import { type Battery, SystemAgent } from '../../../app/server/platform/index.ts'
import { Restart } from '../../../app/server/reset/index.ts'
import { type DataLoss, type Failures, Shelf, Updates, type UpdatesConfiguration } from '../../../app/server/updates/index.ts'
import { COMPATIBLE } from '../../support/bundles.ts'
import { DATA, startFakeSystem } from '../../support/fake-system.ts'
import { scratchFolder } from '../../support/scratch.ts'
import { log } from '../auth/harness.ts'
import { slots } from './harness.ts'

const REQUEST = { updateId: 'upload:a.raucb', backupConfig: false, restartAfter: false }
const NEVER = new AbortController().signal

t.test('a battery that goes empty, and what has begun meanwhile', async (t) => {
  const system = await startFakeSystem(t, {
    info: [DATA({ version: '1.0.0', compatible: COMPATIBLE }), 'done'],
    slots: slots(),
    failures: ['done'],
  })
  const folder = scratchFolder(t, 'refusals')
  const shelf = new Shelf(folder, join(folder, 'media'), async () => {
    return { kind: 'trusted', output: JSON.stringify({ compatible: COMPATIBLE, version: '2.0.0' }) }
  })
  writeFileSync(join(folder, 'a.raucb'), 'bundle')
  let battery: Battery | null = null
  const begun: string[] = []
  const agent = new SystemAgent(system.socket)
  const restart = new Restart(agent, new Bus(), log)
  const updates = new Updates({
    agent,
    shelf,
    settings: { get: () => ({ index_url: null, allow_downgrade: false }) } as UpdatesConfiguration,
    failures: { tell: async () => {} } as unknown as Failures,
    dataLoss: { tell: () => {} } as unknown as DataLoss,
    restart,
    jobs: { begin: (kind: string) => begun.push(kind) } as unknown as Jobs,
    backups: {} as never,
    bus: {} as never,
    log,
    battery: () => battery,
    anyRecording: () => false,
  })
  await updates.start()
  t.teardown(() => updates.stop())
  battery = { percent: 19, discharging: true }
  await t.rejects(updates.install(REQUEST, NEVER), { code: 'CONFLICT', details: 'battery' })
  t.same(begun, [])
  for (const enough of [{ percent: 19, discharging: false }, { percent: 20, discharging: true }, null]) {
    battery = enough
    await updates.install(REQUEST, NEVER)
  }
  t.equal(begun.length, 3)

  // Whatever begins while it is being checked comes first.
  let unblock = () => {}
  system.answer('slots', (_args, { say }) => {
    unblock = restart.block('A rollback')
    for (const line of slots()) say(line)
  })
  await t.rejects(updates.install(REQUEST, NEVER), { code: 'CONFLICT', details: 'busy' })
  unblock()
  t.equal(begun.length, 3)
})

t.test('a medium whose bundle was changed after it was checked', async (t) => {
  const system = await startFakeSystem(t, {
    info: [DATA({ version: '1.0.0', compatible: COMPATIBLE }), 'done'],
    slots: slots(),
    install: ['done'],
  })
  const folder = scratchFolder(t, 'refusals')
  mkdirSync(join(folder, 'media/stick'), { recursive: true })
  const file = join(folder, 'media/stick/a.raucb')
  // What lies there is the version, and RAUC trusts whatever has one.
  const shelf = new Shelf(join(folder, 'updates'), join(folder, 'media'), async (path) => {
    const version = readFileSync(path, 'utf8')
    return version === ''
      ? { kind: 'refused', output: 'signature' }
      : { kind: 'trusted', output: JSON.stringify({ compatible: COMPATIBLE, version }) }
  })
  const works: ((context: JobContext) => Promise<unknown>)[] = []
  const agent = new SystemAgent(system.socket)
  const bus = new Bus()
  const updates = new Updates({
    agent,
    shelf,
    settings: { get: () => ({ index_url: null, allow_downgrade: false }) } as UpdatesConfiguration,
    failures: { tell: async () => {} } as unknown as Failures,
    dataLoss: { tell: () => {} } as unknown as DataLoss,
    restart: new Restart(agent, bus, log),
    jobs: { begin: (_kind: string, work: (typeof works)[number]) => works.push(work) } as unknown as Jobs,
    backups: {} as never,
    bus,
    log,
    battery: () => null,
    anyRecording: () => false,
  })
  await updates.start()
  t.teardown(() => updates.stop())
  const installed = async (meanwhile: () => void) => {
    writeFileSync(file, '2.0.0')
    await updates.install({ ...REQUEST, updateId: 'media:stick/a.raucb' }, NEVER)
    meanwhile()
    return works.pop()?.({ id: '1', signal: NEVER, progress: () => {} })
  }
  await t.rejects(
    installed(() => writeFileSync(file, '0.9.0')),
    { code: 'CONFLICT', details: 'allow_downgrade' },
  )
  await t.rejects(
    installed(() => writeFileSync(file, '3.0.0-beta')),
    { code: 'CONFLICT', details: 'update_id' },
  )
  await t.rejects(
    installed(() => writeFileSync(file, '')),
    { code: 'INVALID_FORMAT' },
  )
  await t.rejects(
    installed(() => rmSync(file)),
    { code: 'NOT_FOUND' },
  )
  t.same(system.asked('install'), [])
  t.match(await installed(() => {}), { version: '2.0.0' })
  t.equal(system.asked('install').length, 1)
})

t.test('a disk that is full', async (t) => {
  const folder = scratchFolder(t, 'refusals')
  const shelf = new Shelf(join(folder, 'updates'), folder, async () => ({ kind: 'unknown' }))
  mkdirSync(join(folder, 'updates'))
  writeFileSync(join(folder, 'updates/.incoming-old.raucb'), 'half')
  await shelf.start()
  t.throws(() => shelf.checkSpace(2 ** 60), { code: 'INSUFFICIENT_STORAGE' })
  await t.rejects(shelf.receive('a.raucb', 2 ** 60), { code: 'INSUFFICIENT_STORAGE' })
  t.same(readdirSync(join(folder, 'updates')), [], 'also nothing of an earlier run')
  const incoming = await shelf.receive('a.raucb', 10)
  await t.rejects(shelf.receive('b.raucb', 10), { code: 'CONFLICT' }, 'one at a time')
  await incoming.write(Buffer.from('hello'))
  const bundle = await incoming.finish()
  await incoming.end()
  t.match(bundle, { id: 'upload:a.raucb', size_bytes: 5, valid: null, problem: /no rauc/ })
  const unpin = shelf.pin(bundle.path)
  const again = await shelf.receive('a.raucb', 10)
  await t.rejects(again.finish(), { code: 'CONFLICT' }, 'not while it is being installed')
  await again.end()
  unpin()
  t.same(readdirSync(join(folder, 'updates')), ['a.raucb'])
})

t.test('a bundle that was refused while the clock was wrong is looked into again, one that is trusted is not', async (t) => {
  const folder = scratchFolder(t, 'refusals')
  const answers = [
    { kind: 'refused', output: 'certificate is not yet valid' },
    { kind: 'trusted', output: JSON.stringify({ compatible: COMPATIBLE, version: '2.0.0' }) },
  ] as const
  let looks = 0
  const shelf = new Shelf(join(folder, 'updates'), folder, async () => answers[Math.min(looks++, 1)] ?? answers[1])
  await shelf.start()
  writeFileSync(join(folder, 'updates/a.raucb'), 'bundle')
  t.match(await shelf.list(), [{ valid: false, problem: 'certificate is not yet valid' }])
  t.match(await shelf.list(), [{ valid: true, version: '2.0.0' }])
  await shelf.list()
  t.equal(looks, 2)
})
