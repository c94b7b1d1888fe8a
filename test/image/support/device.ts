/** What a client does with the device in the machine: over the forwarded ports, as anybody would. */
import { execFile } from 'node:child_process'
import { openAsBlob } from 'node:fs'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import { type Answer, type Api, call, type Json, login } from '../../support/api.ts'
import { ADMIN_PASSWORD } from '../../support/server.ts'
import { BOOT_LIMIT_MS, type Machine } from './vm.ts'

const execute = promisify(execFile)

const ASK_LIMIT_MS = 10_000
const TOOL_LIMIT_MS = 60_000

const FACTORY = { authorization: `Basic ${Buffer.from('admin:admin').toString('base64')}` }

/** Resolves when the server answers; to the milliseconds since power-on. */
export async function answering(machine: Machine, limitMs = BOOT_LIMIT_MS): Promise<number> {
  return machine.wait('an answer of the API', limitMs, async () => {
    const response = await fetch(`${machine.base}/health`, { signal: AbortSignal.timeout(ASK_LIMIT_MS) })
    await response.arrayBuffer()
    // Without credentials: there is a server, and it wants some.
    return response.status === 401 ? machine.uptimeMs : undefined
  })
}

/** As admin, whose password has been changed before. */
export async function loggedIn(machine: Machine, limitMs = BOOT_LIMIT_MS): Promise<Api> {
  await answering(machine, limitMs)
  return login(machine)
}

/** Changes the factory password. */
export async function firstLogin(machine: Machine, limitMs = BOOT_LIMIT_MS): Promise<Api> {
  await answering(machine, limitMs)
  const change = { current_password: 'admin', new_password: ADMIN_PASSWORD }
  const { status, body } = await call(`${machine.base}/api/users/admin/password`, 'PUT', FACTORY, change)
  if (status !== 200) throw new Error(`the factory password cannot be changed: ${status} ${JSON.stringify(body)}`)
  return login(machine)
}

/** Resolves when the device hands out a picture; to the milliseconds since power-on. */
export async function firstPicture(machine: Machine, api: Api, limitMs = BOOT_LIMIT_MS): Promise<number> {
  return machine.wait('a picture', limitMs, async () => {
    const { status, bytes } = await api.bytes('/image')
    if (status !== 200 || !isJpeg(bytes)) throw new Error(`${status} ${bytes.subarray(0, 200).toString('latin1')}`)
    return machine.uptimeMs
  })
}

export function isJpeg(bytes: Buffer): boolean {
  return bytes.subarray(0, 3).equals(Buffer.from([0xff, 0xd8, 0xff])) && bytes.subarray(-2).equals(Buffer.from([0xff, 0xd9]))
}

/** The slot that runs has said that it is good. `from`: what the console had said before. */
export function confirmed(machine: Machine, from = 0, limitMs = BOOT_LIMIT_MS): Promise<void> {
  return machine.waitForLog(/camera: slot [AB] confirmed/, limitMs, from)
}

export interface Found {
  readonly streams: readonly {
    readonly codec_type: string
    readonly codec_name: string
    readonly width?: number
    readonly nb_read_packets?: string
  }[]
  readonly seconds: number
}

/** What ffprobe finds in a file or at an address; it reads all of a file. */
export async function probed(input: string, before: readonly string[] = [], limitMs = TOOL_LIMIT_MS): Promise<Found> {
  const entries = 'stream=codec_type,codec_name,width,nb_read_packets:format=duration'
  const args = ['-v', 'error', ...before, '-show_entries', entries, '-of', 'json', input]
  const { stdout } = await execute('ffprobe', args, { timeout: limitMs, killSignal: 'SIGKILL' })
  const { streams, format } = JSON.parse(stdout)
  return { streams, seconds: Number(format?.duration) }
}

/** Pictures that ffmpeg decodes of the live stream in that time; over TCP, as UDP is not forwarded. */
export async function streamed(machine: Machine, path: string, seconds: number): Promise<number> {
  const address = `rtsp://admin:${ADMIN_PASSWORD}@127.0.0.1:${machine.port('rtsp')}${path}`
  const args = [
    '-v',
    'error',
    '-nostdin',
    '-rtsp_transport',
    'tcp',
    '-i',
    address,
    '-t',
    String(seconds),
    '-an',
    '-f',
    'framehash',
    '-',
  ]
  const { stdout } = await execute('ffmpeg', args, { timeout: TOOL_LIMIT_MS + seconds * 1000, killSignal: 'SIGKILL' })
  return stdout.split('\n').filter((line) => /^\d/.test(line)).length
}

/** Sends a file to the device, as a browser does. */
export async function upload(machine: Machine, api: Api, path: string, file: string): Promise<Answer> {
  const form = new FormData()
  form.set('file', await openAsBlob(file), basename(file))
  const headers = { authorization: `Bearer ${api.token}` }
  const response = await fetch(`${machine.base}${path}`, { method: 'POST', headers, body: form })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Json }
}
