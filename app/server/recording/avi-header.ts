/** The header list of an AVI file: streams, counts, and where in the file the counts lie. */
import type { BlockReader } from './blocks.ts'

/** `start` is where the payload begins, `end` where the next chunk does: chunks are padded to even lengths. */
export interface Chunk {
  readonly id: string
  readonly start: number
  readonly size: number
  readonly end: number
}

export interface AviStream {
  /** `vids` or `auds`. */
  readonly type: string
  readonly handler: string
  /** `rate / scale` units a second. */
  readonly scale: number
  readonly rate: number
  /** Bytes of a unit; 0: a chunk is one. */
  readonly sampleSize: number
  /** Where the payload of its `strh` begins. */
  readonly strh: number
}

export interface Header {
  /** Where the payload of `avih` begins. */
  readonly avih: number
  readonly flags: number
  readonly width: number
  readonly height: number
  readonly streams: readonly AviStream[]
  readonly video: AviStream
  /** Frames that the header tells of. */
  readonly totalFrames: number
  /** Where OpenDML's own count lies. */
  readonly dmlh: number | null
  readonly movi: Chunk | null
}

const MAX_HEADER_BYTES = 4 * 1024 * 1024
const MAX_STREAMS = 16
const AVIH_BYTES = 40
const STRH_BYTES = 48

export function fourcc(data: Buffer, at: number): string {
  return data.toString('latin1', at, at + 4)
}

/** Null when the file is no AVI with a video stream. */
export async function readHeader(reader: BlockReader, size: number): Promise<Header | null> {
  const head = Buffer.from(await reader.read(0, 24))
  if (head.length < 24 || fourcc(head, 0) !== 'RIFF' || fourcc(head, 8) !== 'AVI ') return null
  if (fourcc(head, 12) !== 'LIST' || fourcc(head, 20) !== 'hdrl') return null
  const length = head.readUInt32LE(16)
  if (length < 4 || length > MAX_HEADER_BYTES || 20 + length > size) return null
  const data = Buffer.from(await reader.read(24, length - 4))
  const fields = parse(data, 24)
  const video = fields.streams.find(({ type }) => type === 'vids')
  if (fields.avih === null || !video) return null
  const at = fields.avih - 24
  const listed = data.readUInt32LE(at + 16)
  const odml = fields.dmlh === null ? 0 : data.readUInt32LE(fields.dmlh - 24)
  return {
    ...fields,
    avih: fields.avih,
    flags: data.readUInt32LE(at + 12),
    width: data.readUInt32LE(at + 32),
    height: data.readUInt32LE(at + 36),
    video,
    totalFrames: Math.max(listed, odml),
    movi: await findMovi(reader, 20 + length + (length & 1), size),
  }
}

function parse(data: Buffer, base: number) {
  const streams: AviStream[] = []
  let avih: number | null = null
  let dmlh: number | null = null
  for (const { id, start, size } of chunks(data)) {
    if (id === 'avih' && size >= AVIH_BYTES) avih = base + start
    if (id !== 'LIST' || size < 4) continue
    const type = fourcc(data, start)
    for (const inner of chunks(data.subarray(start + 4, start + size))) {
      const at = start + 4 + inner.start
      if (type === 'strl' && inner.id === 'strh' && inner.size >= STRH_BYTES && streams.length < MAX_STREAMS) {
        streams.push(streamAt(data, at, base))
      }
      if (type === 'odml' && inner.id === 'dmlh' && inner.size >= 4) dmlh = base + at
    }
  }
  return { avih, dmlh, streams }
}

function streamAt(data: Buffer, at: number, base: number): AviStream {
  return {
    type: fourcc(data, at),
    handler: fourcc(data, at + 4).toUpperCase(),
    scale: data.readUInt32LE(at + 20),
    rate: data.readUInt32LE(at + 24),
    sampleSize: data.readUInt32LE(at + 44),
    strh: base + at,
  }
}

function* chunks(data: Buffer): Generator<Chunk> {
  for (let at = 0; at + 8 <= data.length; ) {
    const size = data.readUInt32LE(at + 4)
    const start = at + 8
    if (start + size > data.length) return
    yield { id: fourcc(data, at), start, size, end: start + size + (size & 1) }
    at = start + size + (size & 1)
  }
}

/** Behind the header list; padding and notes may lie between. */
async function findMovi(reader: BlockReader, from: number, size: number): Promise<Chunk | null> {
  for (let offset = from, looked = 0; offset + 12 <= size && looked < 64; looked++) {
    const head = await reader.read(offset, 12)
    if (head.length < 12) return null
    const length = head.readUInt32LE(4)
    const end = offset + 8 + length + (length & 1)
    if (fourcc(head, 0) === 'LIST' && fourcc(head, 8) === 'movi') {
      return { id: 'movi', start: offset + 8, size: length, end }
    }
    offset = end
  }
  return null
}
