import { EventEmitter } from 'node:events'
import pino from 'pino'
import t from 'tap'
import { type Auth, RtspAccess } from '../../../app/server/auth/index.ts'
import { Bus } from '../../../app/server/bus.ts'
import { HELPER_ERROR, HelperDown, HelperError, type MediaSupervisor } from '../../../app/server/media/index.ts'
import { until } from '../../support/api.ts'

/** Takes what it is told, once it has thrown all its refusals. */
class FakeMedia extends EventEmitter {
  readonly refusals: Error[] = []
  readonly taken: string[] = []

  async call(method: string): Promise<object> {
    const refusal = this.refusals.shift()
    if (refusal) throw refusal
    this.taken.push(method)
    return {}
  }
}

const TABLES = ['rtsp.set_users', 'rtsp.set_lockout']

t.test('the helper gets the tables in the end, and anew when the clock has stepped', async (t) => {
  const auth = {
    rtspUsers: () => [],
    shares: { nextExpiry: () => null },
    lockout: { locked: () => ({ users: [], addresses: [], until: null }) },
  } as unknown as Auth
  const media = new FakeMedia()
  const bus = new Bus()
  const access = new RtspAccess(auth, media as unknown as MediaSupervisor, bus, pino({ level: 'silent' }))
  access.start()
  t.teardown(() => access.stop())
  const busy = () => new HelperError(HELPER_ERROR.busy, 'busy')
  media.refusals.push(busy(), busy(), busy())
  bus.emit('user-changed', { username: 'eve' })
  bus.emit('lockout-changed')
  await until(
    () => media.taken.length,
    (count) => count === 3,
    'what was refused',
  )
  t.same(media.taken.splice(0).sort(), ['rtsp.kick', ...TABLES].sort())

  const call = media.call.bind(media)
  let refused = 0
  media.call = async () => {
    refused++
    throw busy()
  }
  for (let i = 0; i < 5; i++) bus.emit('lockout-changed')
  await until(
    () => refused,
    (count) => count > 5,
    'one more try',
  )
  media.call = call
  await until(
    () => media.taken.length,
    (count) => count > 0,
    'the newest',
  )
  t.equal(refused, 6, 'one chain of tries, not one a change')
  t.same(media.taken.splice(0), ['rtsp.set_lockout'])

  media.refusals.push(new HelperDown())
  bus.emit('lockout-changed')
  bus.emit('clock-stepped', { delta_ms: 1e9, synchronised: true })
  await until(
    () => media.taken.length,
    (count) => count === 2,
    'both tables',
  )
  t.same(media.taken, TABLES)
})
