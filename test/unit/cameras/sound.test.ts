import { EventEmitter } from 'node:events'
import { pino } from 'pino'
import t from 'tap'
import { Bus } from '../../../app/server/bus.ts'
import { Camera } from '../../../app/server/cameras/camera.ts'
import { Cameras, parseCameraSpec } from '../../../app/server/cameras/index.ts'
import { Sound } from '../../../app/server/cameras/sound.ts'
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

t.test('a microphone that comes after the picture is found, and one that the helper refuses is tried again', async (t) => {
  const log = pino({ level: 'silent' })
  const media = new FakeMedia()
  let plugged: string | null = null
  let looks = 0
  const find = () => {
    looks += 1
    return plugged
  }
  const sound = new Sound(media as unknown as MediaSupervisor, find, log, 20)
  const mode = { width: 640, height: 480, fps: 30 }
  const camera = new Camera(0, parseCameraSpec('v4l2:/dev/video0'), undefined, mode)
  sound.start([camera])
  t.teardown(() => sound.stop())
  camera.live = { state: 'streaming' } as CameraState
  await sound.follow(camera)
  t.equal(camera.audio, null)
  const call = media.call.bind(media)
  let refused = 0
  media.call = async (...of) => {
    refused += 1
    if (refused === 1) throw new Error('busy')
    return call(...of)
  }
  plugged = 'hw:CARD=Webcam,DEV=0'
  await until(
    () => camera.audio,
    (audio) => audio !== null,
    'its sound',
  )
  t.same(media.asked, [{ method: 'camera.configure', audio: { type: 'alsa', device: plugged } }])
  plugged = null
  const before = looks
  await until(
    () => looks,
    (count) => count > before + 1,
    'another look',
  )
  t.match(camera.audio, { type: 'alsa' }, 'kept while it is gone for a moment')
})

t.test('a microphone that the helper does not take is tried ever less often, and told once', async (t) => {
  const told: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => told.push(JSON.parse(line).error) })
  const times: number[] = []
  let answer = () => {}
  const unanswered = new Promise<never>((_, reject) => {
    answer = () => reject(new Error('no answer'))
  })
  const call = () => {
    times.push(performance.now())
    return times.length === 1 ? unanswered : Promise.reject(new Error('busy'))
  }
  let looks = 0
  const find = (device: string) => {
    if (device === '/dev/video1') looks += 1
    return `hw:${device}`
  }
  const sound = new Sound({ call } as unknown as MediaSupervisor, find, log, 5)
  const mode = { width: 640, height: 480, fps: 30 }
  const [camera, other] = ['v4l2:/dev/video0', 'v4l2:/dev/video1'].map(
    (spec, id) => new Camera(id, parseCameraSpec(spec), undefined, mode),
  ) as [Camera, Camera]
  sound.start([camera, other])
  t.teardown(() => sound.stop())
  camera.audio = null
  for (const one of [camera, other]) one.live = { state: 'streaming' } as CameraState
  await until(
    () => looks,
    (count) => count > 20,
    'looks while the first is not answered',
  )
  const { turn } = camera
  const before = looks
  await until(
    () => looks,
    (count) => count > before + 5,
    'further looks',
  )
  t.equal(camera.turn, turn, 'nothing more waits')
  answer()
  await until(
    () => times.length,
    (count) => count >= 6,
    'further tries',
  )
  t.same(told, ['no answer', 'busy'], 'each once')
  const waits = times.slice(1).map((time, i) => time - (times[i] ?? 0))
  t.ok(
    waits.every((wait, i) => wait >= 5 * 2 ** i),
    `${waits}`,
  )
})
