import { EventEmitter } from 'node:events'
import { pino } from 'pino'
import t from 'tap'
import { Bus } from '../../../app/server/bus.ts'
import { Cameras, parseCameraSpec } from '../../../app/server/cameras/index.ts'
import type { CameraState, MediaSupervisor } from '../../../app/server/media/index.ts'
import { Store } from '../../../app/server/store/index.ts'
import { until } from '../../support/api.ts'
import { scratchFolder } from '../../support/scratch.ts'

/** The helper's place: remembers what it was asked. */
class FakeMedia extends EventEmitter {
  readonly asked: { method: string; audio: unknown }[] = []

  async call(method: string, params: { audio?: unknown }): Promise<object> {
    this.asked.push({ method, audio: params.audio })
    return {}
  }

  say(state: CameraState['state']): void {
    const live = { device: '/dev/video0', width: 640, height: 480, fps: 30, format: 'YUY2', controls: {} }
    this.emit('camera.state', { id: 0, state, reason: null, ...live } satisfies CameraState)
  }
}

t.test('a webcam that is plugged in later brings its microphone, one that is gone for a moment keeps it', async (t) => {
  const folder = scratchFolder(t, 'cameras')
  const log = pino({ level: 'silent' })
  const store = new Store(folder, log)
  await store.start()
  const media = new FakeMedia()
  let plugged: string | null = null
  const specs = [parseCameraSpec('v4l2:/dev/video0')]
  const cameras = new Cameras(
    specs,
    store,
    media as unknown as MediaSupervisor,
    new Bus(),
    log,
    () => plugged,
    () => ({ width: 1280, height: 720, fps: 30 }),
  )
  cameras.start()
  t.teardown(async () => {
    cameras.stop()
    await store.stop()
  })
  media.emit('up')
  await until(
    () => media.asked.map(({ method }) => method),
    (methods) => methods.includes('camera.select'),
    'the camera to be added',
  )
  t.match(media.asked[0], { method: 'camera.add', audio: null })
  t.equal(cameras.view(0).audio, null)

  plugged = 'hw:CARD=Webcam,DEV=0'
  media.say('streaming')
  await until(
    () => cameras.view(0).audio,
    (audio) => audio !== null,
    'its sound',
  )
  t.same(cameras.view(0).audio, { source: 'alsa', device: plugged })
  t.same(media.asked.at(-1), { method: 'camera.configure', audio: { type: 'alsa', device: plugged } })

  const count = media.asked.length
  media.say('no_signal')
  media.say('streaming')
  // Changes of a camera come one after the other: this one is behind whatever those caused.
  await cameras.configure(0, { brightness: 60 })
  t.equal(media.asked.length, count + 1, 'nothing but the brightness')
})
