/**
 * The same answer from a well-known framework: same readings of the machine with the same caching, same JSON, a JWT checked for each
 * request. `http-peer.ts NAME SECRET FOLDER`; prints its port.
 */
import type { AddressInfo } from 'node:net'
import fastifyJwt from '@fastify/jwt'
import express, { type NextFunction, type Request, type Response } from 'express'
import fastify from 'fastify'
import { jwtVerify } from 'jose'
import { DeviceStorage } from '../../app/server/files/index.ts'
import { SystemReader } from '../../app/server/platform/index.ts'

const [, , name = '', secret = '', folder = ''] = process.argv
const system = new SystemReader()
const storage = new DeviceStorage(folder)
storage.start()

function status() {
  return {
    version: '0.1.0',
    build: '2026-01-01T00:00:00.000Z',
    uptime: Math.floor(process.uptime()),
    system: {
      temperature: system.temperature(),
      cpu_usage: system.cpuUsagePercent(),
      memory: system.memory(),
      disk: storage.recentSpace(),
    },
    camera: { connected: true, resolution: '1280x720', framerate: 30, recording: false },
    network: system.network(),
  }
}

const NULLABLE = (type: string) => ({ type, nullable: true })
const SPACE = {
  type: 'object',
  nullable: true,
  properties: { total: { type: 'number' }, available: { type: 'number' }, used: { type: 'number' } },
}
/** With it Fastify writes the JSON by a function made for it. */
const SCHEMA = {
  type: 'object',
  properties: {
    version: { type: 'string' },
    build: { type: 'string' },
    uptime: { type: 'integer' },
    system: {
      type: 'object',
      properties: { temperature: NULLABLE('number'), cpu_usage: NULLABLE('number'), memory: SPACE, disk: SPACE },
    },
    camera: {
      type: 'object',
      properties: {
        connected: { type: 'boolean' },
        resolution: NULLABLE('string'),
        framerate: NULLABLE('integer'),
        recording: { type: 'boolean' },
      },
    },
    network: {
      type: 'object',
      properties: { ip: NULLABLE('string'), hostname: { type: 'string' }, connected: { type: 'boolean' } },
    },
  },
}

/** `remembers`: tokens that were verified once are believed from memory, as our server does. */
async function serveFastify(remembers: boolean): Promise<number> {
  const app = fastify({ logger: false })
  await app.register(fastifyJwt, { secret, verify: { algorithms: ['HS256'], ...(remembers && { cache: 4096 }) } })
  app.addHook('onRequest', (request) => request.jwtVerify())
  app.get('/api/status', { schema: { response: { 200: SCHEMA } } }, async () => status())
  await app.listen({ host: '127.0.0.1', port: 0 })
  return (app.server.address() as AddressInfo).port
}

async function serveExpress(): Promise<number> {
  const key = Buffer.from(secret)
  const app = express()
  app.use((request: Request, response: Response, next: NextFunction) => {
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
    jwtVerify(token, key, { algorithms: ['HS256'] }).then(
      () => next(),
      () => response.sendStatus(401),
    )
  })
  app.get('/api/status', (_request, response) => void response.json(status()))
  return new Promise((resolve) => {
    const server = app.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

const port = await (name === 'express' ? serveExpress() : serveFastify(name === 'fastify_remembering'))
process.stdout.write(`${port}\n`)
