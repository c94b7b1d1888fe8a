import pino from 'pino'
import t from 'tap'
import { SpaceWatch } from '../../../app/server/recording/space.ts'
import { until } from '../../support/api.ts'

const MIB = 1024 * 1024

/** A disk of 64 MiB, of which an eighth stays free; `deletable` is all that may go, and goes only when it is enough. */
function disk(available: number, deletable: number) {
  const state = { total: 64 * MIB, used: 0, available, deletable }
  const makeRoom = async (bytes: number) => {
    if (bytes > state.deletable) return false
    state.deletable -= bytes
    state.available += bytes
    return true
  }
  return { state, makeRoom, space: () => state }
}

t.test('a recording goes on while as much can go as is needed, and ends when nothing can', async (t) => {
  const small = disk(7 * MIB, 2 * MIB)
  const ends: string[] = []
  const watch = new SpaceWatch(
    small,
    pino({ level: 'silent' }),
    () => true,
    (reason) => ends.push(reason),
  )
  watch.watch()
  t.teardown(() => watch.stop())
  await until(
    () => small.state.available + ends.length,
    (done) => done !== 7 * MIB,
    'a look',
  )
  t.same(ends, [])
  t.equal(small.state.available, 8 * MIB)
  small.state.available = 5 * MIB
  await until(
    () => ends,
    ([reason]) => reason === 'disk_full',
    'the end',
  )
})
