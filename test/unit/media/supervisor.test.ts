import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { MediaSupervisor } from '../../../app/server/media/index.ts'
import { until } from '../../support/api.ts'
import { scratchFolder } from '../../support/scratch.ts'

const silent = pino({ level: 'silent' })

/** A helper of a few lines; the file `mood` beside it says how it answers pings, and `pings` how it has. */
const FAKE = `#!${process.execPath}
const { appendFileSync, readFileSync } = require('node:fs')
const { createServer } = require('node:net')
const { join } = require('node:path')
const mood = () => readFileSync(join(__dirname, 'mood'), 'utf8')
const results = {
  'helper.info': () => ({ pid: process.pid, encoder: 'none' }),
  'rtsp.start': () => ({ port: 1, tls_port: 2 }),
  'helper.ping': () => (mood() === 'well' ? {} : null),
  'stats.get': () => ({ pid: process.pid }),
}
const frame = (message) => {
  const json = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))
  const header = Buffer.alloc(8)
  header.writeUInt32BE(json.length, 0)
  return Buffer.concat([header, json])
}
createServer((socket) => {
  let data = Buffer.alloc(0)
  socket.on('close', () => process.exit(0))
  socket.on('data', (chunk) => {
    data = Buffer.concat([data, chunk])
    while (data.length >= 8 && data.length >= 8 + data.readUInt32BE(0)) {
      const end = 8 + data.readUInt32BE(0)
      const { id, method } = JSON.parse(data.subarray(8, end))
      data = data.subarray(end)
      if (method === 'log.set_level') socket.write(frame({ method: 'camera.state', params: { id: 0 } }))
      if (method === 'helper.ping') appendFileSync(join(__dirname, 'pings'), mood() + ' ')
      if (method === 'helper.ping' && mood() === 'hangs') continue
      const result = results[method]?.() ?? (method === 'log.set_level' ? {} : null)
      socket.write(frame(result ? { id, result } : { id, error: { code: -32000, message: 'refused' } }))
    }
  })
}).listen(process.argv[process.argv.indexOf('--socket') + 1])
`

async function supervised(t: Test, onPid: (pid: number | null) => void = () => undefined) {
  const folder = scratchFolder(t, 'supervisor')
  const executable = join(folder, 'helper')
  writeFileSync(executable, FAKE)
  chmodSync(executable, 0o755)
  const feel = (mood: 'well' | 'refuses' | 'hangs') => writeFileSync(join(folder, 'mood'), mood)
  feel('well')
  writeFileSync(join(folder, 'pings'), '')
  const rtsp = {
    address: '127.0.0.1',
    ports: [{ plain: 0, tls: 0 }],
    realm: 'test',
    access: () => ({ max_connections: 1, basic: 'never' as const }),
    certificate: () => ({ certFile: '', keyFile: '' }),
  }
  const media = new MediaSupervisor(executable, rtsp, silent, onPid)
  t.teardown(() => media.stop())
  await media.start()
  const first = media.info?.pid ?? 0
  const replaced = () =>
    until(
      () => media.info?.pid ?? first,
      (pid) => pid !== first,
      'another helper',
      20_000,
    )
  return { media, feel, first, replaced, pings: () => readFileSync(join(folder, 'pings'), 'utf8') }
}

t.test('whoever fails over the end of the helper keeps it from nothing', async (t) => {
  const { media, first, replaced } = await supervised(t)
  let heard = 0
  media.on('down', () => {
    throw new Error('no room')
  })
  media.on('down', () => {
    heard += 1
  })
  process.kill(first, 'SIGKILL')
  await replaced()
  t.equal(heard, 1, 'nor the others')
})

t.test('whoever fails over what the helper tells does not end it', async (t) => {
  const { media, first } = await supervised(t)
  const told: unknown[] = []
  media.on('camera.state', (state) => {
    told.push(state)
    throw new Error('no room')
  })
  await media.applyLogLevel()
  t.same(told, [{ id: 0 }])
  t.match(await media.call('stats.get', {}), { pid: first })
  t.equal(media.info?.pid, first)
})

t.test('a helper whose process cannot be noted is started all the same', async (t) => {
  const { first, replaced } = await supervised(t, () => {
    throw new Error('no room')
  })
  process.kill(first, 'SIGKILL')
  await replaced()
  t.pass('started twice')
})

t.test('a helper that hangs is replaced, whatever it answered before', async (t) => {
  const { media, feel, pings, replaced } = await supervised(t)
  feel('refuses')
  let downs = 0
  media.on('down', () => {
    downs += 1
  })
  await until(pings, (answers) => answers.includes('refuses'), 'a ping that it refuses')
  feel('hangs')
  await until(
    () => downs,
    (count) => count === 1,
    'its end',
    20_000,
  )
  feel('well')
  await replaced()
})
