/** Content codings: which one a client takes, and the work off the event loop. */
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

export type Coding = 'br' | 'gzip'

const gzipAsync = promisify(gzip)
const brotliAsync = promisify(brotliCompress)

/** The first of `ours` that `Accept-Encoding` does not refuse. */
export function pickCoding(header: string, ours: readonly Coding[]): Coding | null {
  if (header === '') return null
  const weights = new Map<string, number>()
  for (const item of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim())
    const q = parameters.find((parameter) => parameter.startsWith('q='))
    weights.set(name, q === undefined ? 1 : Number(q.slice(2)))
  }
  return ours.find((coding) => (weights.get(coding) ?? weights.get('*') ?? 0) > 0) ?? null
}

/** Quick enough to pay off while a client waits. */
export function compressNow(bytes: Uint8Array | string): Promise<Buffer> {
  return gzipAsync(bytes, { level: 4 })
}

/** Done once and kept. */
export function compressForGood(bytes: Uint8Array, coding: Coding): Promise<Buffer> {
  if (coding === 'gzip') return gzipAsync(bytes, { level: 9 })
  return brotliAsync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } })
}

/** Types that shrink. */
export function isText(type: string): boolean {
  return /^(text\/|application\/(json|javascript|xml|.*\+(json|xml)|wasm|manifest\+json)|image\/svg\+xml)/.test(type)
}
