import { join } from 'node:path'
import t from 'tap'
import { AgentBroken, AgentFailure, SystemAgent } from '../../../app/server/platform/index.ts'
import { until } from '../../support/api.ts'
import { DATA, startFakeSystem } from '../../support/fake-system.ts'

t.test('data lines are the answer, progress goes to who wants it', async (t) => {
  const system = await startFakeSystem(t, {
    info: [DATA({ version: '1.2.3' }), 'data two words', 'done'],
    install: ['progress 0 Checking', 'progress 50 Copying image', 'progress 100', 'done'],
  })
  const agent = new SystemAgent(system.socket)
  t.equal(agent.available, true)
  t.same(await agent.ask(['info']), ['{"version":"1.2.3"}', 'two words'])
  const seen: [number, string][] = []
  const onProgress = (fraction: number, text: string) => void seen.push([fraction, text])
  t.same(await agent.ask(['install', '/data/camera/updates/a.raucb'], { onProgress }), [])
  t.same(seen, [
    [0, 'Checking'],
    [0.5, 'Copying image'],
    [1, ''],
  ])
  t.same(system.requests, ['info', 'install /data/camera/updates/a.raucb'])
})

t.test('an answer may come in any pieces', async (t) => {
  const system = await startFakeSystem(t, {
    slots: async (_args, { raw }) => {
      for (const byte of 'data ä b\ndata\ndone\n') {
        raw(byte)
        await new Promise(setImmediate)
      }
    },
  })
  t.same(await new SystemAgent(system.socket).ask(['slots']), ['ä b', ''])
})

t.test('a refusal carries its code; what is no answer is told apart', async (t) => {
  const system = await startFakeSystem(t, {
    activate: ['failed NOT_BOOTABLE slot B is empty'],
    cut: ['data 1'],
    nonsense: ['hello'],
    lower: ['failed because'],
    endless: (_args, { raw }) => raw('x'.repeat(300_000)),
    much: (_args, { raw }) => raw(`data ${'x'.repeat(1000)}\n`.repeat(5000)),
  })
  const agent = new SystemAgent(system.socket)
  const refused = await agent.ask(['activate', 'B']).catch((error: unknown) => error)
  t.ok(refused instanceof AgentFailure)
  t.match(refused, { code: 'NOT_BOOTABLE', message: 'slot B is empty' })
  for (const verb of ['cut', 'nonsense', 'lower', 'endless', 'much'])
    t.ok((await agent.ask([verb]).catch((error: unknown) => error)) instanceof AgentBroken, verb)
})

t.test('no answer in time, and a caller who gives up, end the connection', async (t) => {
  const gone: Promise<void>[] = []
  const system = await startFakeSystem(t, {
    slow: (_args, { closed }) => {
      gone.push(closed)
      return closed
    },
  })
  const agent = new SystemAgent(system.socket)
  await t.rejects(agent.ask(['slow'], { timeoutMs: 20 }), /not within 20 ms/)
  const controller = new AbortController()
  const asked = agent.ask(['slow'], { signal: controller.signal })
  controller.abort(new Error('given up'))
  await t.rejects(asked, /given up/)
  await t.rejects(agent.ask(['slow'], { signal: controller.signal }), /given up/)
  await Promise.all(gone)
})

t.test('few connections at once: the others wait for their turn, and too many are refused', async (t) => {
  const go: (() => void)[] = []
  let [open, most] = [0, 0]
  const system = await startFakeSystem(t, {
    slow: async (_args, { say }) => {
      most = Math.max(most, ++open)
      await new Promise<void>((resolve) => go.push(resolve))
      open--
      say('done')
    },
  })
  const agent = new SystemAgent(system.socket)
  const all = Array.from({ length: 36 }, () => agent.ask(['slow'], { timeoutMs: 20_000 }))
  await t.rejects(agent.ask(['slow']), { code: 'SERVICE_UNAVAILABLE', details: 'system' })
  for (let done = 0; done < all.length; done++) {
    await until(
      () => go.length,
      (waiting) => waiting > 0,
      'a request',
    )
    go.shift()?.()
  }
  t.same(await Promise.all(all), Array(36).fill([]))
  t.same([most, system.requests.length], [4, 36])
})

t.test('only words that the service would take are sent', async (t) => {
  const system = await startFakeSystem(t, { 'network-set': ['done'] })
  const agent = new SystemAgent(system.socket)
  for (const words of [[], [''], ['a b'], ['a\nreboot'], ['ü'], ['x'.repeat(256)], Array<string>(10).fill('x'.repeat(200))])
    await t.rejects(agent.ask(words), /no request/)
  t.same(system.requests, [])
  t.same(await agent.ask(['network-set', 'eth0', 'static', '192.0.2.7/24', '-', '192.0.2.1,2001:db8::1']), [])
})

t.test('where there is no such socket this is no appliance', async (t) => {
  const agent = new SystemAgent(join(import.meta.dirname, 'none.sock'))
  t.equal(agent.available, false)
  await t.rejects(agent.ask(['info']), { code: 'UNSUPPORTED_SETTING' })
  t.equal(new SystemAgent(import.meta.filename).available, false, 'a file is no socket')
})
