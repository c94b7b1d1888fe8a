import t from 'tap'
import { Bus } from '../../../app/server/bus.ts'
import type { Cameras } from '../../../app/server/cameras/index.ts'
import type { Categories, Places, Recorder } from '../../../app/server/recording/index.ts'
import type { SnapshotResult, Snapshots } from '../../../app/server/snapshots/index.ts'
import { State } from '../../../app/server/state/index.ts'
import type { Store } from '../../../app/server/store/index.ts'

t.test('snap is true until the last still is taken', async (t) => {
  const taken: (() => void)[] = []
  const snapshots = {
    take: () => new Promise<void>((resolve) => taken.push(resolve)) as Promise<unknown> as Promise<SnapshotResult>,
  }
  const cameras = { active: 0, checkChange: () => {}, view: () => ({ settings: {} }) } as unknown as Cameras
  const recorder = { status: () => ({ state: 'stopped' }), isRecording: () => false } as unknown as Recorder
  const bus = new Bus()
  const told: unknown[] = []
  bus.on('state', ({ key, value }) => told.push(key === 'snap' && value))
  const nothing = {} as unknown
  const state = new State(
    nothing as Store,
    cameras,
    recorder,
    snapshots as unknown as Snapshots,
    nothing as Places,
    nothing as Categories,
    bus,
  )
  const user = { role: 'operator', cameras: null } as const
  const first = state.write({ snap: true }, user)
  const second = state.write({ snap: true }, user)
  while (taken.length < 2) await new Promise(setImmediate)
  t.same(state.read(['snap'], user), { snap: true })
  taken[0]?.()
  await first
  t.same(state.read(['snap'], user), { snap: true }, 'the other one is still being taken')
  t.notOk(told.includes(false))
  taken[1]?.()
  await second
  t.same(state.read(['snap'], user), { snap: false })
  t.equal(told.at(-1), false)
})
