/** Static files of the web console, held in memory and compressed once. They are public: the login page is one of them. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { lookup } from 'mrmime'
import { isNotModified } from './conditional.ts'
import { type Coding, compressForGood, isText, pickCoding } from './encoding.ts'
import type { Exchange } from './exchange.ts'
import { BINARY_CSP, pageHeaders } from './security-headers.ts'

/** Pages whose address is not their name. */
const PAGES: Readonly<Record<string, string>> = {
  '/': 'index.html',
  '/monitoring': 'monitoring.html',
  '/api/docs': 'docs.html',
  '/api/v1/docs': 'docs.html',
}
const WORTH_COMPRESSING = 1024

interface Asset {
  readonly bytes: Uint8Array
  readonly type: string
  readonly etag: string
  readonly codings: ReadonlyMap<Coding, Uint8Array>
}

export class StaticAssets {
  readonly #files: ReadonlyMap<string, Uint8Array>
  readonly #assets = new Map<string, Asset>()

  /** `files` by name, such as `index.html` or `img/logo.svg`. */
  constructor(files: ReadonlyMap<string, Uint8Array> = new Map()) {
    this.#files = files
  }

  /** All files below a directory, as they are now. */
  static async fromDirectory(directory: string): Promise<StaticAssets> {
    const files = new Map<string, Uint8Array>()
    for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const path = join(entry.parentPath, entry.name)
      files.set(relative(directory, path).split(sep).join('/'), await readFile(path))
    }
    return new StaticAssets(files)
  }

  /** These and others; the others win. */
  with(files: ReadonlyMap<string, Uint8Array>): StaticAssets {
    return new StaticAssets(new Map([...this.#files, ...files]))
  }

  async start(): Promise<void> {
    await Promise.all([...this.#files].map(async ([name, bytes]) => this.#assets.set(name, await prepare(name, bytes))))
  }

  has(name: string): boolean {
    return this.#assets.has(name)
  }

  send(exchange: Exchange, name: string): void {
    const asset = this.#assets.get(name)
    if (asset === undefined) throw new Error(`No asset ${name}`)
    const coding = pickCoding(exchange.acceptEncoding, [...asset.codings.keys()])
    // A strong tag names the bytes that go out, so each coding has its own.
    const etag = coding === null ? asset.etag : `${asset.etag.slice(0, -1)}-${coding}"`
    const headers: Record<string, string> = {
      ETag: etag,
      'Cache-Control': 'no-cache',
      'Cross-Origin-Resource-Policy': 'same-origin',
      // Also with 304, for what it says replaces what the client has kept.
      ...(asset.type.startsWith('text/html')
        ? pageHeaders(exchange.host, exchange.secure)
        : { 'Content-Security-Policy': BINARY_CSP }),
    }
    if (asset.codings.size > 0) headers.Vary = 'Accept-Encoding'
    if (isNotModified(exchange.conditions, { etag })) {
      exchange.sendHead(304, headers)
      return
    }
    headers['Content-Type'] = asset.type
    if (coding !== null) headers['Content-Encoding'] = coding
    exchange.send(200, headers, (coding === null ? undefined : asset.codings.get(coding)) ?? asset.bytes)
  }
}

async function prepare(name: string, bytes: Uint8Array): Promise<Asset> {
  const type = lookup(name) ?? 'application/octet-stream'
  const codings = new Map<Coding, Uint8Array>()
  if (isText(type) && bytes.length > WORTH_COMPRESSING) {
    for (const coding of ['br', 'gzip'] as const) {
      const small = await compressForGood(bytes, coding)
      if (small.length < bytes.length) codings.set(coding, small)
    }
  }
  const digest = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
  return { bytes, type: /^text\/|javascript|json$/.test(type) ? `${type}; charset=utf-8` : type, etag: `"${digest}"`, codings }
}

/** The asset or the redirection that a path stands for; null where there is none. */
export function assetFor(assets: StaticAssets, path: string, listener: string): { name: string } | { location: string } | null {
  if (path === '/' && listener === 'dashboard') return { location: '/monitoring' }
  const name = PAGES[path] ?? path.slice(1)
  return assets.has(name) ? { name } : null
}
