import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { filesRoutes } from '../../../app/server/api/files.ts'
import { Bus, type ServerEvent } from '../../../app/server/bus.ts'
import { DeviceStorage, type FileLimits, Files, type RecordedFiles } from '../../../app/server/files/index.ts'
import type { Authenticate, HttpServerOptions, Role } from '../../../app/server/http/index.ts'
import { type Scope, scratchFolder } from '../../support/scratch.ts'
import { log, serve } from '../http/harness.ts'

/** A catalogue as far as files ask for it. */
export class FakeRecordings implements RecordedFiles {
  readonly rows = new Map<string, { id: number; camera: number; state: string }>()
  readonly forgotten: string[] = []

  ownerOf(path: string) {
    return this.rows.get(path)
  }

  running() {
    return [...this.rows].filter(([, row]) => row.state === 'recording').map(([path]) => ({ parts: [{ path }] }))
  }

  noteFile() {}

  forgetFile(path: string) {
    if (this.rows.delete(path)) this.forgotten.push(path)
  }
}

/** The token is the role; `operator-1` sees camera 1 only. */
const authenticate: Authenticate = ({ authorization }) => {
  const [role = '', camera] = authorization.slice('Bearer '.length).split('-')
  if (role === '') return null
  const cameras = camera === undefined ? null : [Number(camera)]
  return { username: role, role: role as Role, via: 'bearer', mustChangePassword: false, cameras }
}

export async function filesOn(t: Scope, options: { root?: string; limits?: Partial<FileLimits> } = {}) {
  const scratch = scratchFolder(t, 'files')
  const root = options.root ?? join(scratch, 'media')
  mkdirSync(root, { recursive: true })
  const recordings = new FakeRecordings()
  const bus = new Bus()
  const events: ServerEvent[] = []
  bus.on('event', (event) => events.push(event))
  const limits = { maxUploadBytes: 64 * 1024 * 1024, quotaBytes: 0, ...options.limits }
  const files = new Files(new DeviceStorage(root), recordings, bus, log, () => limits)
  await files.start()
  t.teardown(() => files.stop())
  return { files, root, scratch, recordings, events, limits }
}

export type Part = readonly [name: string, content: string | Buffer, filename?: string]

const BOUNDARY = '----camera-test-1f4c'
export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`

export function form(parts: readonly Part[]): Buffer<ArrayBuffer> {
  const pieces = parts.flatMap(([name, content, filename]) => {
    const file = filename === undefined ? '' : `; filename="${filename}"\r\nContent-Type: application/octet-stream`
    return [`--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`, content, '\r\n']
  })
  return Buffer.concat([...pieces, `--${BOUNDARY}--\r\n`].map((piece) => Buffer.from(piece as string)))
}

export async function serveFiles(t: Scope, options: Parameters<typeof filesOn>[1] & { http?: Partial<HttpServerOptions> } = {}) {
  const domain = await filesOn(t, options)
  const served = await serve(t, { routes: filesRoutes(domain.files), authenticate, ...options.http })
  const { client } = served
  const upload = (parts: readonly Part[], as = 'operator') =>
    client.json('/upload', { method: 'POST', body: form(parts), headers: { 'content-type': FORM_TYPE }, as })
  return { ...domain, ...served, upload }
}
