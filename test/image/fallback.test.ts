/**
 * Updates that do not work: whatever they break down at, the device comes back by itself with the release before, and tells why.
 * IMAGE_UPDATES=server-crashes,init-hangs names them.
 */
import t, { type Test } from 'tap'
import type { Api, Json } from '../support/api.ts'
import { type BundleName, bundleVersion, imageVersion } from './support/bundles.ts'
import { loggedIn } from './support/device.ts'
import { figure, seconds } from './support/figures.ts'
import { fetched, recorded } from './support/recordings.ts'
import { FULL, machineFor } from './support/scenario.ts'
import { credential } from './support/shell.ts'
import { install, installed, sent, updateStatus } from './support/updates.ts'
import type { Machine } from './support/vm.ts'

/** Three tries of the worst: a start up to the server, and the time that the server gets. */
const FALL_BACK_LIMIT_MS = 900_000
/** Instead of three minutes; the same code waits. */
const CONFIRM_SECONDS = 45

interface Case {
  readonly bundle: BundleName
  readonly stage: string
  readonly reason: RegExp
  /** In the last lines of the journal that come with it; absent: it never came to have one. */
  readonly log?: RegExp
  /** Tries; a slot that the boot loader cannot load at all is passed over at once. */
  readonly tries: number
}

const ALL: readonly Case[] = [
  { bundle: 'kernel-panics', stage: 'kernel', reason: /kernel/i, tries: 3 },
  { bundle: 'server-crashes', stage: 'server', reason: /not healthy/, log: /broken on purpose/, tries: 3 },
  { bundle: 'init-hangs', stage: 'kernel', reason: /hung/i, tries: 3 },
  { bundle: 'kernel-garbage', stage: 'loader', reason: /boot loader/i, tries: 1 },
]
const ASKED = process.env.IMAGE_UPDATES?.split(',') ?? (FULL ? ALL.map(({ bundle }) => bundle) : ['kernel-panics'])
const CASES = ALL.filter(({ bundle }) => ASKED.includes(bundle))

t.test('falls back', { timeout: CASES.length * (FALL_BACK_LIMIT_MS + 300_000) }, async (t) => {
  const shorter = credential(
    'systemd.unit-dropin.camera-confirm.service',
    `[Service]\nEnvironment=CAMERA_CONFIRM_SECONDS=${CONFIRM_SECONDS}\n`,
  )
  const machine = await machineFor(t, 'fallback', 'prepared', { smbios: [shorter] })
  await machine.start()
  let api = await loggedIn(machine)
  const kept = await recorded(api, 3)
  for (const broken of CASES) {
    await t.test(broken.bundle, async (t) => {
      api = await fallsBack(t, machine, api, broken)
      t.equal((await fetched(api, kept.id)).sha256, kept.sha256, 'the recordings are there')
    })
  }
})

async function fallsBack(t: Test, machine: Machine, api: Api, broken: Case): Promise<Api> {
  const { id } = await sent(machine, api, broken.bundle)
  const boots = machine.boots
  const before = machine.log.length
  const job = await installed(api, await install(api, id, true))
  t.match(job, { status: 'succeeded' }, JSON.stringify(job))
  const began = performance.now()
  await machine.waitForBoot(boots + 1, 120_000)
  await machine.waitForLog(/camera: slot A confirmed/, FALL_BACK_LIMIT_MS, before)
  figure(t, `fall-back, ${broken.bundle}`, `${seconds(performance.now() - began)}, ${machine.boots - boots} power-ons`)

  const again = await loggedIn(machine)
  const status = await updateStatus(again)
  t.match(status, { booted: 'A', primary: 'A', pending: null, confirmed: true })
  t.equal(String(status.current?.version), imageVersion())
  const [failure, ...others] = status.failures as unknown as Json[]
  t.equal(others.length, 0)
  const { stage, reason, tries: attempts } = broken
  t.match(failure, { slot: 'B', version: bundleVersion(broken.bundle), stage, reason, attempts }, JSON.stringify(failure))
  const log = ((failure?.log ?? []) as unknown as string[]).join('\n')
  if (broken.log) t.match(log, broken.log, 'the last lines of its journal')
  t.equal(
    machine.boots - boots,
    broken.tries === 1 ? 1 : broken.tries + 1,
    'as many power-ons as tries, and the one that came back',
  )

  t.equal((await again.delete('/api/system/updates/failures')).status, 200)
  t.same((await updateStatus(again)).failures, [])
  return again
}
