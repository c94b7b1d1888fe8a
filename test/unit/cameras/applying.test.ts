import { EventEmitter } from 'node:events'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { Bus } from '../../../app/server/bus.ts'
import { Cameras, parseCameraSpec } from '../../../app/server/cameras/index.ts'
import { ApiError } from '../../../app/server/errors.ts'
import { HELPER_ERROR, HelperError, HelperTimeout, type MediaSupervisor } from '../../../app/server/media/index.ts'
import { Store } from '../../../app/server/store/index.ts'
import { until } from '../../support/api.ts'
import { scratchFolder } from '../../support/scratch.ts'

interface Params {
  readonly mode?: { readonly fps: number }
  readonly brightness?: number
}

/** The helper's place: has one camera at most, and refuses what it is told to. */
class FakeMedia extends EventEmitter {
  readonly refusals: { readonly method: string; readonly error: Error }[] = []
  has = false
  fps = 0
  brightness = 0

  async call(method: string, { mode, brightness }: Params): Promise<object> {
    const refusal = this.refusals.findIndex((one) => one.method === method)
    if (refusal >= 0) throw this.refusals.splice(refusal, 1)[0]?.error
    if (method === 'camera.add' && this.has) throw new HelperError(HELPER_ERROR.exists, 'exists')
    if (method !== 'camera.add' && !this.has) throw new HelperError(HELPER_ERROR.not_found, 'no such camera')
    if (method === 'camera.add') this.has = true
    if (method === 'camera.remove') this.has = false
    if (mode) this.fps = mode.fps
    if (brightness !== undefined) this.brightness = brightness
    if (mode) this.emit('camera.state', { id: 0, state: 'streaming', reason: null, fps: mode.fps })
    return {}
  }

  refuse(method: string, error: Error = new HelperError(HELPER_ERROR.busy, 'busy')): void {
    this.refusals.push({ method, error })
  }
}

async function rig(t: Test) {
  const log = pino({ level: 'silent' })
  const store = new Store(scratchFolder(t, 'cameras'), log)
  await store.start()
  const media = new FakeMedia()
  const parts = [store, media as unknown as MediaSupervisor, new Bus(), log] as const
  const mode = () => ({ width: 640, height: 360, fps: 30 })
  const cameras = new Cameras([parseCameraSpec('test')], ...parts, () => null, mode)
  cameras.start()
  t.teardown(async () => {
    cameras.stop()
    await store.stop()
  })
  return { media, cameras, store }
}

const added = (media: FakeMedia) => until(() => media.has && media.refusals.length === 0, Boolean, 'the camera')

t.test('a camera that the helper does not take, or only half, is added all the same', async (t) => {
  const { media, cameras } = await rig(t)
  media.refuse('camera.add')
  media.refuse('camera.select')
  media.emit('up')
  await added(media)
  await until(
    () => media.fps,
    (fps) => fps === 30,
    'its mode',
  )
  await cameras.setEnabled(0, false)
  t.notOk(media.has)
})

t.test('a camera that the helper never got can be switched off', async (t) => {
  const { cameras } = await rig(t)
  await cameras.setEnabled(0, false)
  t.equal(cameras.view(0).settings.enabled, false)
})

t.test('a change that fails half, or is not answered, leaves the helper with what is stored', async (t) => {
  const { media, cameras } = await rig(t)
  media.emit('up')
  await added(media)
  media.refuse('camera.set_controls')
  await t.rejects(cameras.configure(0, { fps: 15, brightness: 70 }), { code: 'SERVICE_UNAVAILABLE' })
  t.equal(media.fps, 15, 'which it has taken')
  await until(
    () => media.fps,
    (fps) => fps === 30,
    'the stored mode',
  )
  media.fps = 99
  media.refuse('camera.configure', new HelperTimeout('camera.configure'))
  await t.rejects(cameras.configure(0, { fps: 15 }), { code: 'CAMERA_NOT_CONNECTED' })
  await until(
    () => media.fps,
    (fps) => fps === 30,
    'the stored mode again',
  )
  t.equal(cameras.view(0).settings.fps, 30)
})

t.test('a change that cannot be stored, or that is not answered, is taken back', async (t) => {
  const { media, cameras, store } = await rig(t)
  const table = store.table<number, object>('cameras')
  const { put } = table
  const full = () => {
    table.put = () => {
      table.put = put
      throw new ApiError('INSUFFICIENT_STORAGE', 'full')
    }
  }
  const has = (wanted: boolean) =>
    until(
      () => media.has,
      (it) => it === wanted,
      `the camera to be ${wanted ? 'there' : 'gone'} again`,
    )
  media.emit('up')
  await added(media)
  full()
  await t.rejects(cameras.setEnabled(0, false), { code: 'INSUFFICIENT_STORAGE' })
  t.notOk(media.has)
  t.equal(cameras.view(0).state, 'starting')
  await has(true)
  full()
  await t.rejects(cameras.configure(0, { fps: 15 }), { code: 'INSUFFICIENT_STORAGE' })
  t.notOk(cameras.choseMode(0), 'nobody has chosen yet')
  await until(
    () => media.fps,
    (fps) => fps === 30,
    'the stored mode',
  )
  await cameras.setEnabled(0, false)
  full()
  await t.rejects(cameras.setEnabled(0, true), { code: 'INSUFFICIENT_STORAGE' })
  t.ok(media.has)
  await has(false)
  media.refuse('camera.select', new HelperTimeout('camera.select'))
  await t.rejects(cameras.setEnabled(0, true), { code: 'CAMERA_NOT_CONNECTED' })
  t.ok(media.has)
  await has(false)
  t.match(cameras.view(0), { state: 'stopped', settings: { enabled: false, fps: 30 } })
})

t.test('after slow motion the camera gets its rate back, be it later', async (t) => {
  const { media, cameras } = await rig(t)
  media.emit('up')
  await added(media)
  await cameras.captureAt(0, 120)
  t.equal(media.fps, 120)
  media.refuse('camera.configure')
  await cameras.captureAsSet(0)
  await until(
    () => media.fps,
    (fps) => fps === 30,
    'its rate',
  )
})
