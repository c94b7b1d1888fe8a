/**
 * The power goes at random moments, in everything that writes: the device always starts again, nothing that was finished is lost, and of a recording
 * under way at most the last second. IMAGE_SEED repeats a run, as far as the moments go; IMAGE_CUTS=idle,recording
 * names the kinds.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type Api, type Json, until } from '../support/api.ts'
import { random } from '../support/random.ts'
import { bundleVersion, imageVersion } from './support/bundles.ts'
import { confirmed, firstLogin, firstPicture, loggedIn } from './support/device.ts'
import { figure } from './support/figures.ts'
import { catalogue, type Fetched, fetched, over, recorded, startRecording } from './support/recordings.ts'
import { FULL, machineFor, prepared } from './support/scenario.ts'
import { install, sent, updateStatus } from './support/updates.ts'
import { BOOT_LIMIT_MS, type Machine } from './support/vm.ts'

const SEED = Number(process.env.IMAGE_SEED ?? Date.now() % 2 ** 31)
const ROUNDS = FULL ? 10 : 1
const ROUND_LIMIT_MS = 400_000
/** How long it has been seen to take without KVM and without other load, and half as much again. */
const INSTALL_MS = 25_000
const RESET_MS = 30_000

const rnd = random(SEED)

t.comment(`IMAGE_SEED=${SEED}`)

const KINDS = { idle, recording, 'update install': updating, 'first start': firstStart, 'factory reset': resetting }
const ALL = Object.keys(KINDS)
const ASKED = process.env.IMAGE_CUTS?.split(',') ?? (FULL ? ALL : ['recording', 'update install', 'first start'])

for (const [kind, scenario] of Object.entries(KINDS)) {
  if (!ASKED.includes(kind)) continue
  t.test(`${ROUNDS} power cuts: ${kind}`, { timeout: (ROUNDS + 1) * ROUND_LIMIT_MS }, scenario)
}

async function cutAfter(t: Test, machine: Machine, ms: number, what: string): Promise<void> {
  await delay(ms)
  await machine.cut()
  t.comment(`${what}: cut after ${(ms / 1000).toFixed(2)} s`)
}

/** The start after the cut went as every start does. */
async function sound(t: Test, machine: Machine, before: number): Promise<void> {
  await confirmed(machine, before)
  t.equal(await machine.run('systemctl --failed --plain --no-legend'), '', 'no unit has failed')
  t.equal((await machine.tryRun('test -e /data/system/data-recreated')).status, 1, 'the data partition is the one that it was')
}

async function unharmed(t: Test, api: Api, kept: readonly Fetched[]): Promise<void> {
  for (const { id, sha256 } of kept) t.equal((await fetched(api, id)).sha256, sha256, `recording ${id} is as it was`)
}

async function idle(t: Test): Promise<void> {
  const machine = await machineFor(t, 'cut-idle', 'prepared')
  await machine.start()
  let api = await loggedIn(machine)
  const kept = [await recorded(api, 3)]
  for (let round = 1; round <= ROUNDS; round++) {
    await cutAfter(t, machine, rnd() * 15_000, `round ${round}`)
    const before = machine.log.length
    await machine.start()
    api = await loggedIn(machine)
    await sound(t, machine, before)
    await unharmed(t, api, kept)
  }
}

async function recording(t: Test): Promise<void> {
  const machine = await machineFor(t, 'cut-recording', 'prepared')
  await machine.start()
  let api = await loggedIn(machine)
  await firstPicture(machine, api)
  const kept: Fetched[] = []
  const lost: number[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    kept.push(await recorded(api, 3))
    const id = await startRecording(api)
    await until(
      () => api.get('/api/recording/status'),
      ({ body }) => Number(body.position_ms) > 500,
      'the recording runs',
      30_000,
    )
    await delay(rnd() * 8000)
    const position = Number((await api.get('/api/recording/status')).body.position_ms)
    await machine.cut()
    const before = machine.log.length
    await machine.start()
    api = await loggedIn(machine)
    await sound(t, machine, before)
    const entry = await over(api, id)
    t.equal(String(entry.state), 'ready', JSON.stringify(entry))
    const { found } = await fetched(api, id)
    const missing = position - found.seconds * 1000
    lost.push(Math.max(0, missing))
    t.ok(missing <= 1000, `round ${round}: ${position} ms had been recorded, ${(found.seconds * 1000).toFixed(0)} ms play`)
    await unharmed(t, api, kept)
    await firstPicture(machine, api)
  }
  figure(t, 'lost of a recording at a power cut, at most', `${Math.max(...lost).toFixed(0)} ms of ${lost.length} recordings`)
}

/** The old release or the new one, whole; and then an update goes through. */
async function updating(t: Test): Promise<void> {
  let machine: Machine | undefined
  const seen: string[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    if (!machine) {
      machine = await machineFor(t, `cut-update-${round}`, 'prepared')
      await machine.start()
    }
    let api = await loggedIn(machine)
    const offers = (await api.get('/api/system/updates/check')).body.updates as unknown as Json[]
    const id = offers.find(({ source }) => String(source) === 'upload')?.id ?? (await sent(machine, api, 'good')).id
    t.equal((await install(api, id, false)).status, 200)
    await cutAfter(t, machine, rnd() * INSTALL_MS, `round ${round}`)
    const before = machine.log.length
    await machine.start()
    api = await loggedIn(machine)
    await sound(t, machine, before)
    const status = await updateStatus(api)
    const version = String(status.current?.version)
    seen.push(version)
    const good = { [imageVersion()]: 'A', [bundleVersion('good')]: 'B' }
    t.equal(String(status.booted), good[version], `round ${round}: ${version} runs`)
    t.same(status.failures, [], 'an interrupted installation is no failed release')
    if (version !== imageVersion()) {
      await machine.cut()
      machine = undefined
    }
  }
  figure(t, 'started after a cut while installing', seen.join(', '))
}

async function firstStart(t: Test): Promise<void> {
  const { confirmedMs } = await prepared()
  for (let round = 1; round <= ROUNDS; round++) {
    const machine = await machineFor(t, `cut-first-${round}`, 'new')
    await machine.start()
    await cutAfter(t, machine, rnd() * confirmedMs, `round ${round}`)
    await machine.start()
    const api = await firstLogin(machine)
    await firstPicture(machine, api)
    await sound(t, machine, 0)
    t.match(await machine.run('cat /etc/machine-id'), /^[0-9a-f]{32}$/)
    t.ok(Number(await machine.run('df --output=size -B1000000 /data | tail -n 1')) > 3000, 'the data partition has grown')
    await recorded(api, 3)
    await machine.cut()
  }
}

async function resetting(t: Test): Promise<void> {
  const machine = await machineFor(t, 'cut-reset', 'prepared')
  await machine.start()
  let api = await loggedIn(machine)
  for (let round = 1; round <= ROUNDS; round++) {
    await firstPicture(machine, api)
    await recorded(api, 3)
    const boots = machine.boots
    t.equal((await api.post('/api/system/factory-reset', { confirm: true })).status, 200)
    await machine.waitForBoot(boots + 1, BOOT_LIMIT_MS)
    await cutAfter(t, machine, rnd() * RESET_MS, `round ${round}`)
    const before = machine.log.length
    await machine.start()
    api = await firstLogin(machine)
    await sound(t, machine, before)
    t.same(await catalogue(api), [], 'the recordings are gone')
    t.equal((await machine.tryRun('test -e /data/system/factory-reset')).status, 1, 'the reset is over')
  }
}
