/** A release is confirmed when all checks have passed in one go, and not before. */
import pino from 'pino'
import t from 'tap'
import type { CameraView } from '../../../app/server/cameras/index.ts'
import type { MediaSupervisor } from '../../../app/server/media/index.ts'
import { SystemAgent } from '../../../app/server/platform/index.ts'
import { apiAnswers, Confirmation, picturesCome } from '../../../app/server/updates/index.ts'
import { login, until } from '../../support/api.ts'
import { startFakeSystem } from '../../support/fake-system.ts'
import { startQuickServer } from '../../support/server.ts'

const log = pino({ level: 'silent' })
const SOON = { firstMs: 5, mostMs: 20 }

t.test('it asks again until nothing is missing and the system has taken it', async (t) => {
  const system = await startFakeSystem(t, { healthy: ['failed CONFIRM no'] })
  let missing: string | null = 'the database'
  let broken = false
  const checks = [
    async () => missing,
    async () => {
      if (broken) throw new Error('the helper is gone')
      return null
    },
  ]
  const confirmation = new Confirmation(new SystemAgent(system.socket), checks, log, SOON)
  confirmation.start()
  t.teardown(() => confirmation.stop())
  const waitsFor = (what: string) =>
    until(
      () => confirmation.waitingFor,
      (waiting) => waiting === what,
      what,
    )
  await waitsFor('the database')
  t.same(system.requests, [])
  broken = true
  missing = null
  await waitsFor('the helper is gone')
  t.same(system.requests, [])
  broken = false
  await waitsFor('no')
  t.equal(confirmation.confirmed, false)
  system.answer('healthy', ['done'])
  await until(
    () => confirmation.confirmed,
    (confirmed) => confirmed,
    'the confirmation',
  )
  t.equal(confirmation.waitingFor, null)
})

t.test('nobody is asked elsewhere than on the appliance, nor after the end', async (t) => {
  let asked = 0
  const check = async () => {
    asked++
    return 'something'
  }
  const elsewhere = new Confirmation(new SystemAgent('/nonexistent/socket'), [check], log, SOON)
  elsewhere.start()
  await elsewhere.stop()
  t.equal(asked, 0)
  const system = await startFakeSystem(t)
  const ended = new Confirmation(new SystemAgent(system.socket), [check], log, SOON)
  ended.start()
  await until(
    () => asked,
    (times) => times > 1,
    'a second attempt',
  )
  await ended.stop()
  const before = asked
  await new Promise((resolve) => setTimeout(resolve, 100))
  t.equal(asked, before)
})

t.test('a very slow system has a minute to take it', async (t) => {
  const limits: (number | undefined)[] = []
  const ask: SystemAgent['ask'] = async (_words, options) => {
    limits.push(options?.timeoutMs)
    return []
  }
  const confirmation = new Confirmation({ available: true, ask } as SystemAgent, [], log, SOON)
  confirmation.start()
  t.teardown(() => confirmation.stop())
  await until(
    () => confirmation.confirmed,
    (confirmed) => confirmed,
    'the confirmation',
  )
  t.same(limits, [60_000])
})

t.test('pictures count only when they are new', async (t) => {
  let frames: Record<number, number> = { 0: 100, 1: 0 }
  let enabled = true
  const call = async () => ({ cameras: Object.entries(frames).map(([id, n]) => ({ id: Number(id), frames_captured: n })) })
  const media = { call } as unknown as MediaSupervisor
  const cameras = { list: () => [{ settings: { enabled } } as CameraView] }
  const check = picturesCome(media, cameras)
  t.match(await check(), /no camera/, 'a number alone says nothing')
  t.match(await check(), /no camera/, 'it stands still')
  frames = { 0: 3, 1: 0 }
  t.match(await check(), /no camera/, 'the helper has begun anew')
  frames = { 0: 3, 1: 1 }
  t.equal(await check(), null)
  enabled = false
  t.equal(await check(), null, 'nobody wants pictures')
})

t.test('the API is asked with credentials that are nobody’s', async (t) => {
  const server = await startQuickServer(t, {
    args: ['--rate-limits', 'off', '--extra-http-port', '0', '--extra-https-port', '0'],
  })
  t.match(await apiAnswers('0.0.0.0', server.ports.http, 'a token that is none')(), /status 401/)
  await t.rejects(apiAnswers('127.0.0.1', 1, 'x')(), /ECONNREFUSED/)
  const [plain = 0] = server.ports.extra_http ?? []
  const { token } = await login(server)
  t.equal(await apiAnswers('0.0.0.0', plain, token)(), null, 'on the further port too')
  t.equal(server.ports.extra_https?.length, 1)
})
