/**
 * kill -9 in the middle of uploads and of settings being written: each time the server comes back with the old or the new, never with half,
 * and never without what it had confirmed. CRASH_KILLS says how often; each kill hits an upload and a setting.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { call, login, until } from '../support/api.ts'
import { scratchFolder } from '../support/scratch.ts'
import { startServer, type TestServer } from '../support/server.ts'

const KILLS = Number(process.env.CRASH_KILLS ?? 50)
const LONGEST_MS = 160
const SIZE = 1_500_000
const LONGEST_TEST_MS = 240_000
const GIB = 1024 ** 3

/** A number that was confirmed, and the one that may have been on its way at the kill. */
interface Written {
  confirmed: number
  tried: number
}

/** Something that is written again and again with a rising number, and read back as all the numbers that it holds. */
interface Setting {
  readonly name: string
  readonly write: (server: TestServer, token: string, value: number) => Promise<number>
  readonly read: (server: TestServer, token: string) => Promise<readonly unknown[]>
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const SETTINGS: readonly Setting[] = [
  {
    name: 'picture controls',
    write: async ({ base }, token, value) => {
      const body = { brightness: value % 100, contrast: value % 100, saturation: value % 100 }
      return (await call(`${base}/api/v1/camera/settings`, 'PUT', bearer(token), body)).status
    },
    read: async ({ base }, token) => {
      const { data } = (await call(`${base}/api/v1/camera/settings`, 'GET', bearer(token))).body
      return [data?.brightness, data?.contrast, data?.saturation]
    },
  },
  {
    name: 'a section of the configuration',
    write: async ({ base }, token, value) => {
      const storage = { retention_days: value % 100, start_margin_bytes: value % 100, quota_bytes: GIB + (value % 100) }
      return (await call(`${base}/api/config/storage`, 'PUT', bearer(token), { storage })).status
    },
    read: async ({ base }, token) => {
      const { storage } = (await call(`${base}/api/config/storage`, 'GET', bearer(token))).body
      return [storage?.retention_days, storage?.start_margin_bytes, Number(storage?.quota_bytes) - GIB]
    },
  },
  {
    name: 'state keys',
    write: async ({ base }, token, value) => {
      const body = { recordingQueueSize: 1 + (value % 100), recordingBufferSize: 65_536 + (value % 100) }
      return (await call(`${base}/api/settings`, 'POST', bearer(token), body)).status
    },
    read: async ({ base }, token) => {
      const { body } = await call(`${base}/api/settings`, 'GET', bearer(token))
      return [Number(body.recordingQueueSize) - 1, Number(body.recordingBufferSize) - 65_536]
    },
  },
]

/** Every part of it says which version it is of. */
function version(n: number): Buffer {
  const bytes = Buffer.alloc(SIZE + n)
  for (let at = 0; at + 4 <= bytes.length; at += 4) bytes.writeUInt32LE(n, at)
  return bytes
}

/** The version that a file is of; null where it is not whole. */
function versionOf(path: string): number | null {
  const bytes = readFileSync(path)
  const n = bytes.length - SIZE
  return n >= 0 && bytes.equals(version(n)) ? n : null
}

async function upload(server: TestServer, token: string, name: string, n: number): Promise<number> {
  const body = new FormData()
  body.set('file', new Blob([new Uint8Array(version(n))]), name)
  body.set('overwrite', 'true')
  const response = await fetch(`${server.base}/upload`, { method: 'POST', body, headers: bearer(token) })
  await response.arrayBuffer()
  return response.status
}

/** Writes until the server is gone; anything but a success is an error of the test. */
async function writeOn(written: Written, write: (value: number) => Promise<number>, gone: () => boolean): Promise<void> {
  while (!gone()) {
    written.tried = written.confirmed + 1
    const status = await write(written.tried).catch((error: unknown) => {
      if (gone()) return 0
      throw error
    })
    if (status === 200) written.confirmed = written.tried
    else if (status !== 0) throw new Error(`answered ${status}`)
  }
}

function isOneOf(t: Test, seen: unknown, { confirmed, tried }: Written, what: string): void {
  if (seen !== confirmed && seen !== tried)
    t.fail(`${what}: ${String(seen)}, but ${confirmed} was confirmed and ${tried} under way`)
}

t.test(`${KILLS} kills in the middle of uploads and settings`, { timeout: KILLS * 6000 + 60_000 }, async (t) => {
  const scratch = scratchFolder(t, 'crash-files')
  const dataDir = join(scratch, 'data')
  const media = join(dataDir, 'media')
  const options = { dataDir, args: ['--rate-limits', 'off', '--log-level', 'error'] }
  let server = await startServer(t, options)
  const { token } = await login(server)
  const file: Written = { confirmed: 0, tried: 0 }
  const settings = SETTINGS.map((setting) => ({ setting, written: { confirmed: 0, tried: 0 } }))
  t.equal(await upload(server, token, 'target', 0), 200)
  for (const { setting } of settings) t.equal(await setting.write(server, token, 0), 200, setting.name)

  let [interrupted, fresh, kills] = [0, 0, 0]
  // A machine with much else to do gets fewer kills, not a longer test.
  const deadline = performance.now() + LONGEST_TEST_MS * Math.max(1, KILLS / 50)
  for (let kill = 1; kill <= KILLS && performance.now() < deadline; kill++) {
    kills = kill
    let gone = false
    const writers = [
      writeOn(
        file,
        (n) => upload(server, token, 'target', n),
        () => gone,
      ),
      upload(server, token, `new-${kill}`, kill).catch(() => 0),
      ...settings.map(({ setting, written }) =>
        writeOn(
          written,
          (n) => setting.write(server, token, n),
          () => gone,
        ),
      ),
    ]
    const underWay = () => readdirSync(join(media, '.uploads')).length > 0
    // Two of three wait for an upload to hit; the others fall where they will.
    await until(underWay, (begun) => begun || kill % 3 === 0, 'an upload')
    await delay(Math.random() * LONGEST_MS)
    if (kill % 3 > 0) await until(underWay, Boolean, 'another upload')
    if (underWay()) interrupted++
    gone = true
    await server.kill()
    const results = await Promise.all(writers)

    server = await startServer(t, options)
    if (readdirSync(join(media, '.uploads')).length > 0) t.fail('something is left of an upload')
    const found = versionOf(join(media, 'target'))
    isOneOf(t, found, file, 'the file')
    file.confirmed = found ?? file.confirmed
    const created = readdirSync(media).includes(`new-${kill}`)
    if (created && versionOf(join(media, `new-${kill}`)) !== kill) t.fail('a new file is not whole')
    if (!created && results[1] === 200) t.fail('a confirmed file is gone')
    if (created) fresh++
    rmSync(join(media, `new-${kill}`), { force: true })
    for (const { setting, written } of settings) {
      const [value, ...others] = await setting.read(server, token)
      if (others.some((other) => other !== value)) t.fail(`${setting.name}: half of a change: ${[value, ...others]}`)
      isOneOf(t, value, { confirmed: written.confirmed % 100, tried: written.tried % 100 }, setting.name)
      if (value === written.tried % 100) written.confirmed = written.tried
    }
  }
  t.comment(`${interrupted} of ${kills} kills met an unfinished upload; ${fresh} new files were whole`)
  t.ok(interrupted >= kills / 4, 'the kills meet uploads')
})
