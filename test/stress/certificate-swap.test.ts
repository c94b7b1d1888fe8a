/** Certificates change while clients come in: not one request may be lost, and nobody is cut off. */
import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import t from 'tap'
import { pem } from '../integration/tls/pem.ts'
import { login } from '../support/api.ts'
import { startServer } from '../support/server.ts'

const CLIENTS = 8
const SWAPS = 8
/** Requests, each over a connection of its own, between one swap and the next. */
const BETWEEN = 150

async function ask(socket: TLSSocket, token: string, connection: 'close' | 'keep-alive'): Promise<string> {
  socket.write(`GET /api/status HTTP/1.1\r\nHost: camera\r\nAuthorization: Bearer ${token}\r\nConnection: ${connection}\r\n\r\n`)
  let answer = ''
  // The body is one JSON object that ends with the network's.
  while (!answer.endsWith('}}')) answer += String((await once(socket, 'data'))[0])
  return answer
}

t.test('swaps under load', async (t) => {
  const server = await startServer(t, { args: ['--rate-limits', 'off'] })
  const api = await login(server)
  const open = async () => {
    const socket = connect({ port: server.ports.https, host: '127.0.0.1', rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    return socket
  }
  const kept = await open()
  const failures: unknown[] = []
  const subjects = new Set<string>()
  let [served, running] = [0, true]
  const client = async () => {
    while (running) {
      try {
        const socket = await open()
        subjects.add(String(socket.getPeerCertificate().subject.CN))
        const answer = await ask(socket, api.token, 'close')
        if (!answer.startsWith('HTTP/1.1 200')) failures.push(answer)
        socket.destroy()
      } catch (error) {
        failures.push(error)
      }
      served++
    }
  }
  const clients = Array.from({ length: CLIENTS }, client)
  for (let swap = 0; swap < SWAPS; swap++) {
    const from = served
    while (served < from + BETWEEN) await new Promise((resolve) => setImmediate(resolve))
    const answer = await api.put('/api/system/certificate', await pem(`swap-${swap}`))
    t.equal(answer.status, 200)
    // The answer has come: whoever connects now meets the new one.
    const socket = await open()
    t.equal(socket.getPeerCertificate().subject.CN, `swap-${swap}`)
    socket.destroy()
    if (swap === 3) t.match(await ask(kept, api.token, 'keep-alive'), /^HTTP\/1\.1 200/, 'an open connection goes on')
  }
  running = false
  await Promise.all(clients)
  t.strictSame(failures, [], `${served} requests`)
  t.ok(subjects.size >= SWAPS, `${subjects.size} certificates were met`)
  t.comment(`${served} requests, each with its own connection, over ${SWAPS} swaps`)
})

t.test('many changes at the same time leave one of them', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const pems = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => pem(name)))
  const answers = await Promise.all(pems.map((body) => api.put('/api/system/certificate', body)))
  t.ok(answers.every(({ status }) => status === 200))
  const { body } = await api.get('/api/system/certificate')
  for (let i = 0; i < 10; i++) {
    const socket = connect({ port: server.ports.https, host: '127.0.0.1', rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    t.equal(`CN=${socket.getPeerCertificate().subject.CN}`, String(body.subject))
    socket.destroy()
  }
})

t.test('the port stays ours alone, before a swap and after it', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const port = String(server.ports.https)
  for (const option of ['--https-port', '--http-port']) {
    await t.rejects(startServer(t, { args: [option, port] }), /exited with 2:\n.*Cannot listen on 127\.0\.0\.1/s, option)
  }
  t.equal((await api.delete('/api/system/certificate')).status, 200)
  await t.rejects(startServer(t, { args: ['--https-port', port] }), /Cannot listen/)
})
