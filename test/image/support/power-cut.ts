/**
 * The power goes at a random moment: the device starts again as ever, and nothing that was finished is lost. IMAGE_SEED repeats a run, as far as the
 * moments go.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Api } from '../../support/api.ts'
import { random } from '../../support/random.ts'
import { confirmed } from './device.ts'
import { type Fetched, fetched } from './recordings.ts'
import { FULL } from './scenario.ts'
import type { Machine } from './vm.ts'

const SEED = Number(process.env.IMAGE_SEED ?? Date.now() % 2 ** 31)
const ROUND_LIMIT_MS = 400_000

/** Power cuts of each kind. */
export const ROUNDS = FULL ? 10 : 1

const rnd = random(SEED)

/** One kind of power cuts. */
export function powerCuts(kind: string, scenario: (t: Test) => Promise<void>): void {
  t.comment(`IMAGE_SEED=${SEED}`)
  t.test(`${ROUNDS} power cuts: ${kind}`, { timeout: (ROUNDS + 1) * ROUND_LIMIT_MS }, scenario)
}

/** A moment in so many milliseconds. */
export function moment(withinMs: number): number {
  return rnd() * withinMs
}

export async function cutWithin(t: Test, machine: Machine, withinMs: number, what: string): Promise<void> {
  const ms = moment(withinMs)
  await delay(ms)
  await machine.cut()
  t.comment(`${what}: cut after ${(ms / 1000).toFixed(2)} s`)
}

/** The start after the cut went as every start does. `before`: how much the console had said before it. */
export async function sound(t: Test, machine: Machine, before: number): Promise<void> {
  await confirmed(machine, before)
  t.equal(await machine.run('systemctl --failed --plain --no-legend'), '', 'no unit has failed')
  t.equal((await machine.tryRun('test -e /data/system/data-recreated')).status, 1, 'the data partition is the one that it was')
}

export async function unharmed(t: Test, api: Api, kept: readonly Fetched[]): Promise<void> {
  for (const { id, sha256 } of kept) t.equal((await fetched(api, id)).sha256, sha256, `recording ${id} is as it was`)
}
