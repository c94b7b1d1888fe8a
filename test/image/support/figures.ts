/** What was measured: as a comment of the test, and in a file that the make target shows at its end. */
import { appendFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'

const FOLDER = join(import.meta.dirname, '../../../build/image/test')

export function figure(t: Test, what: string, value: string): void {
  t.comment(`${what}: ${value}`)
  mkdirSync(FOLDER, { recursive: true })
  appendFileSync(join(FOLDER, 'figures.txt'), `${what}: ${value}\n`)
}

/** A figure that must not be more than its budget. */
export function within(t: Test, what: string, value: number, budget: number, unit: string): void {
  figure(t, what, `${value.toFixed(1)} ${unit} (budget ${budget})`)
  t.ok(value <= budget, `${what}: ${value.toFixed(1)} of ${budget} ${unit}`)
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
