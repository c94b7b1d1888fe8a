/** Static files of the web console, held in memory and compressed at the first request for them. They are public: the login page is one of them. */
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
  /** Those that pay off; none for what is small or does not shrink. */
  readonly codings: readonly Coding[]
  readonly compressed: Map<Coding, Promise<Uint8Array>>
}

export class StaticAssets {
  readonly #files: ReadonlyMap<string, Uint8Array>
  readonly #assets: ReadonlyMap<string, Asset>

  /** `files` by name, such as `index.html` or `img/logo.svg`. */
  constructor(files: ReadonlyMap<string, Uint8Array> = new Map()) {
    this.#files = files
    this.#assets = new Map([...files].map(([name, bytes]) => [name, assetOf(name, bytes)]))
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

  has(name: string): boolean {
    return this.#assets.has(name)
  }

  send(exchange: Exchange, name: string): Promise<void> | undefined {
    const asset = this.#assets.get(name)
    if (asset === undefined) throw new Error(`No asset ${name}`)
    const coding = pickCoding(exchange.acceptEncoding, asset.codings)
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
    if (asset.codings.length > 0) headers.Vary = 'Accept-Encoding'
    if (isNotModified(exchange.conditions, { etag })) {
      exchange.sendHead(304, headers)
      return undefined
    }
    headers['Content-Type'] = asset.type
    if (coding === null) {
      exchange.send(200, headers, asset.bytes)
      return undefined
    }
    headers['Content-Encoding'] = coding
    return compressed(asset, coding).then((small) => exchange.send(200, headers, small))
  }
}

function assetOf(name: string, bytes: Uint8Array): Asset {
  const type = lookup(name) ?? 'application/octet-stream'
  const digest = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
  return {
    bytes,
    type: /^text\/|javascript|json$/.test(type) ? `${type}; charset=utf-8` : type,
    etag: `"${digest}"`,
    codings: isText(type) && bytes.length > WORTH_COMPRESSING ? ['br', 'gzip'] : [],
    compressed: new Map(),
  }
}

/** Once for all requests. At the start it would take a tenth of its time, mostly for nobody. */
function compressed(asset: Asset, coding: Coding): Promise<Uint8Array> {
  let small = asset.compressed.get(coding)
  if (small === undefined) {
    small = compressForGood(asset.bytes, coding)
    asset.compressed.set(coding, small)
  }
  return small
}

/** The asset or the redirection that a path stands for; null where there is none. */
export function assetFor(assets: StaticAssets, path: string, listener: string): { name: string } | { location: string } | null {
  if (path === '/' && listener === 'dashboard') return { location: '/monitoring' }
  const name = PAGES[path] ?? path.slice(1)
  return assets.has(name) ? { name } : null
}
