import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { Connection, encodeFrame, FrameReader } from '../../../app/server/media/connection.ts'
import { HELPER_ERROR, HelperError } from '../../../app/server/media/index.ts'
import { nextPhase, restartDelay } from '../../../app/server/media/machine.ts'

function withBinary(message: unknown, binary: Uint8Array): Buffer {
  const frame = encodeFrame(message)
  frame.writeUInt32BE(binary.length, 4)
  return Buffer.concat([frame, binary])
}

t.test('frames come out whole, however the bytes are cut', async () => {
  const messages = fc.array(fc.record({ value: fc.jsonValue(), binary: fc.uint8Array({ maxLength: 40 }) }), { maxLength: 6 })
  fc.assert(
    fc.property(messages, fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }), (sent, cuts) => {
      const bytes = Buffer.concat(sent.map(({ value, binary }) => withBinary({ value }, binary)))
      const received: { value: string; binary: string }[] = []
      const reader = new FrameReader()
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const length = cuts[i % cuts.length] ?? 1
        reader.push(bytes.subarray(at, at + length), (value, binary) => received.push({ value, binary: binary.toString('hex') }))
        at += length
      }
      const expected = sent.map(({ value, binary }) => ({
        value: JSON.stringify({ value }),
        binary: Buffer.from(binary).toString('hex'),
      }))
      return JSON.stringify(received) === JSON.stringify(expected)
    }),
  )
})

t.test('impossible lengths end the connection instead of filling the memory', async (t) => {
  for (const lengths of [
    [0, 0],
    [262_145, 0],
    [1, 33_554_433],
    [0xffffffff, 0],
  ]) {
    const header = Buffer.alloc(8)
    header.writeUInt32BE(lengths[0] ?? 0, 0)
    header.writeUInt32BE(lengths[1] ?? 0, 4)
    t.throws(() => new FrameReader().push(header, () => {}), { message: /lengths/ })
  }
})

t.test('the helper phases', async (t) => {
  t.equal(nextPhase('stopped', 'start'), 'starting')
  t.equal(nextPhase('up', 'lost'), 'waiting')
  t.equal(nextPhase('waiting', 'retry'), 'starting')
  t.equal(nextPhase('stopped', 'connected'), undefined, 'a late connection after a stop means nothing')
  t.same([1, 2, 3, 20].map(restartDelay), [50, 100, 200, 5000])
})

t.test('requests of the helper are answered, whatever their handler does', async (t) => {
  const [ours, helper] = await socketPair(t)
  new Connection(
    ours,
    () => {},
    async (method, params) => {
      if (method === 'refuse') throw new HelperError(HELPER_ERROR.not_found, 'no such recording')
      if (method === 'break') throw new Error('a secret detail')
      return { method, params }
    },
    () => {},
  )
  const answers: unknown[] = []
  const reader = new FrameReader()
  const all = new Promise<void>((resolve) => {
    helper.on('data', (chunk: Buffer) => {
      reader.push(chunk, (json) => answers.push(JSON.parse(json)))
      if (answers.length === 3) resolve()
    })
  })
  helper.write(encodeFrame({ jsonrpc: '2.0', id: 'h1', method: 'echo', params: { a: 1 } }))
  helper.write(encodeFrame({ jsonrpc: '2.0', id: 'h2', method: 'refuse', params: {} }))
  helper.write(encodeFrame({ jsonrpc: '2.0', id: 'h3', method: 'break', params: {} }))
  await all
  t.same(answers, [
    { jsonrpc: '2.0', id: 'h1', result: { method: 'echo', params: { a: 1 } } },
    { jsonrpc: '2.0', id: 'h2', error: { code: -32001, message: 'no such recording' } },
    { jsonrpc: '2.0', id: 'h3', error: { code: -32603, message: 'internal error' } },
  ])
})

async function socketPair(t: Test): Promise<[Socket, Socket]> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const one = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [other] = await accepted
  t.teardown(() => {
    one.destroy()
    other.destroy()
    server.close()
  })
  return [one, other]
}
