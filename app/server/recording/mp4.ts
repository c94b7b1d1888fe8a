/**
 * Reads the structure of the MP4 files that the recorder writes (ISO/IEC 14496-12, fragmented: `ftyp moov (moof mdat)*`), to learn how
 * much of a file plays and where a torn tail begins. Only box headers and the small tables are read, never the media.
 */
import { type FileHandle, open } from 'node:fs/promises'
import { BlockReader } from './blocks.ts'

export interface Mp4Summary {
  /** Milliseconds of the video track that play. */
  readonly durationMs: number
  readonly frames: number
  readonly width: number
  readonly height: number
  /** Bytes up to the end of the last whole fragment; what lies behind is torn. */
  readonly wholeBytes: number
  readonly fileBytes: number
}

interface Box {
  readonly type: string
  /** Offset of the payload and of the byte behind the box. */
  readonly start: number
  readonly end: number
}

const MAX_TABLE_BYTES = 16 * 1024 * 1024
const HEADER_BYTES = 16
const TRUN = { dataOffset: 0x1, firstFlags: 0x4, duration: 0x100, size: 0x200, flags: 0x400, offset: 0x800 }
const TFHD = { base: 0x1, description: 0x2, duration: 0x8 }

/** Null when the file is no MP4 or holds no playable video. */
export async function readMp4(path: string): Promise<Mp4Summary | null> {
  const file = await open(path, 'r')
  try {
    return await summarise(file, (await file.stat()).size)
  } finally {
    await file.close()
  }
}

/**
 * Milliseconds that a file plays which was finalised: its header tells the duration (`mehd`) and its index (`mfra`) closes it. Null for any
 * other file. Reads only both ends, however long the recording is.
 */
export async function readFinalisedDuration(path: string): Promise<number | null> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const reader = new BlockReader(file)
    if (!(await endsWithIndex(reader, size))) return null
    const first = parseBox(await reader.read(0, HEADER_BYTES), 0, 0, size)
    const moov = first && parseBox(await reader.read(first.end, HEADER_BYTES), 0, first.end, size)
    if (moov?.type !== 'moov' || moov.end - moov.start > MAX_TABLE_BYTES) return null
    return movieDuration(await reader.read(moov.start, moov.end - moov.start))
  } finally {
    await file.close()
  }
}

/** The last box is a whole `mfra`: its last field (`mfro`) is its own length. */
async function endsWithIndex(reader: BlockReader, size: number): Promise<boolean> {
  if (size < HEADER_BYTES) return false
  const length = (await reader.read(size - 4, 4)).readUInt32BE(0)
  if (length < HEADER_BYTES || length > size) return false
  const box = parseBox(await reader.read(size - length, HEADER_BYTES), 0, size - length, size)
  return box?.type === 'mfra' && box.end === size
}

function movieDuration(moov: Buffer): number | null {
  const mvhd = find(moov, 'mvhd')
  const mehd = find(moov, 'mvex', 'mehd')
  if (!mvhd || mvhd.length < 24 || !mehd || mehd.length < (mehd[0] === 1 ? 12 : 8)) return null
  const timescale = mvhd.readUInt32BE(mvhd[0] === 1 ? 20 : 12)
  const duration = mehd[0] === 1 ? Number(mehd.readBigUInt64BE(4)) : mehd.readUInt32BE(4)
  return timescale > 0 && duration > 0 ? Math.round((duration / timescale) * 1000) : null
}

async function summarise(file: FileHandle, size: number): Promise<Mp4Summary | null> {
  const reader = new BlockReader(file)
  let track: VideoTrack | null = null
  let ticks = 0
  let frames = 0
  let wholeBytes = 0
  let pending: { ticks: number; frames: number } | null = null
  let media = false
  for (let offset = 0; offset < size; ) {
    const box = parseBox(await reader.read(offset, HEADER_BYTES), 0, offset, size)
    if (!box || box.end > size) break
    const table = box.type === 'moov' || box.type === 'moof'
    if (table && box.end - box.start > MAX_TABLE_BYTES) break
    if (box.type === 'moov') {
      track = videoTrack(await reader.read(box.start, box.end - box.start))
      if (!track) return null
      ticks += track.ticks
      frames += track.frames
      wholeBytes = box.end
    } else if (box.type === 'moof') {
      pending = track && fragment(await reader.read(box.start, box.end - box.start), track)
    } else if (box.type === 'mdat' && pending) {
      ticks += pending.ticks
      frames += pending.frames
      pending = null
      wholeBytes = box.end
    } else if (box.type === 'mdat' && (!track || track.frames > 0)) {
      // Of a plain file, before or behind its tables.
      media = true
      wholeBytes = box.end
    } else if (!pending && box.type !== 'mdat') {
      wholeBytes = box.end
    }
    offset = box.end
  }
  if (!track || frames === 0 || ticks === 0) return null
  // Its tables tell of pictures that are not all there: nothing of it may be cut off.
  if (track.frames > 0 && !media) return null
  const durationMs = Math.round((ticks / track.timescale) * 1000)
  return { durationMs, frames, width: track.width, height: track.height, wholeBytes, fileBytes: size }
}

/** The box whose header lies at `at` in `data`; `base` is where `data[at]` lies in the file. */
function parseBox(data: Buffer, at: number, base: number, limit: number): Box | null {
  if (data.length - at < 8) return null
  const type = data.toString('latin1', at + 4, at + 8)
  const short = data.readUInt32BE(at)
  if (short === 1 && data.length - at >= 16) {
    const long = Number(data.readBigUInt64BE(at + 8))
    return long < 16 || !Number.isSafeInteger(long) ? null : { type, start: base + 16, end: base + long }
  }
  const length = short === 0 ? limit - base : short
  return length < 8 ? null : { type, start: base + 8, end: base + length }
}

/** The boxes inside a box's payload, as slices. */
function* children(data: Buffer): Generator<{ type: string; data: Buffer }> {
  for (let at = 0; at < data.length; ) {
    const box = parseBox(data, at, at, data.length)
    if (!box || box.end > data.length) return
    yield { type: box.type, data: data.subarray(box.start, box.end) }
    at = box.end
  }
}

function find(data: Buffer, ...path: string[]): Buffer | null {
  const [first, ...rest] = path
  for (const child of children(data)) {
    if (child.type !== first) continue
    return rest.length === 0 ? child.data : find(child.data, ...rest)
  }
  return null
}

interface VideoTrack {
  readonly id: number
  readonly timescale: number
  readonly width: number
  readonly height: number
  /** Of samples listed in `moov` itself: all of a plain MP4, none of a fragmented one. */
  readonly ticks: number
  readonly frames: number
  /** Default sample duration of `trex`. */
  readonly defaultTicks: number
}

function videoTrack(moov: Buffer): VideoTrack | null {
  for (const { type, data } of children(moov)) {
    if (type !== 'trak') continue
    const handler = find(data, 'mdia', 'hdlr')
    const mdhd = find(data, 'mdia', 'mdhd')
    const tkhd = find(data, 'tkhd')
    if (handler?.toString('latin1', 8, 12) !== 'vide' || !mdhd || !tkhd || mdhd.length < 24 || tkhd.length < 84) continue
    const id = tkhd.readUInt32BE(tkhd[0] === 1 ? 20 : 12)
    const timescale = mdhd.readUInt32BE(mdhd[0] === 1 ? 20 : 12)
    if (timescale === 0) return null
    const listed = sampleTable(find(data, 'mdia', 'minf', 'stbl', 'stts'))
    return {
      id,
      timescale,
      width: tkhd.readUInt16BE(tkhd.length - 8),
      height: tkhd.readUInt16BE(tkhd.length - 4),
      ...listed,
      defaultTicks: defaultDuration(moov, id),
    }
  }
  return null
}

/** Sum of an `stts` table. */
function sampleTable(stts: Buffer | null): { ticks: number; frames: number } {
  let ticks = 0
  let frames = 0
  if (stts && stts.length >= 8) {
    const entries = Math.min(stts.readUInt32BE(4), Math.floor((stts.length - 8) / 8))
    for (let i = 0; i < entries; i++) {
      const count = stts.readUInt32BE(8 + i * 8)
      frames += count
      ticks += count * stts.readUInt32BE(12 + i * 8)
    }
  }
  return { ticks, frames }
}

function defaultDuration(moov: Buffer, trackId: number): number {
  const mvex = find(moov, 'mvex')
  for (const { type, data } of mvex ? children(mvex) : []) {
    if (type === 'trex' && data.length >= 24 && data.readUInt32BE(4) === trackId) return data.readUInt32BE(12)
  }
  return 0
}

/** Video samples of one `moof`. */
function fragment(moof: Buffer, track: VideoTrack): { ticks: number; frames: number } | null {
  let ticks = 0
  let frames = 0
  for (const { type, data } of children(moof)) {
    if (type !== 'traf') continue
    const tfhd = find(data, 'tfhd')
    if (!tfhd || tfhd.length < 8 || tfhd.readUInt32BE(4) !== track.id) continue
    const fallback = fragmentDuration(tfhd) ?? track.defaultTicks
    for (const child of children(data)) {
      if (child.type !== 'trun') continue
      const run = trackRun(child.data, fallback)
      ticks += run.ticks
      frames += run.frames
    }
  }
  return { ticks, frames }
}

function fragmentDuration(tfhd: Buffer): number | null {
  const flags = tfhd.readUInt32BE(0) & 0xffffff
  if (!(flags & TFHD.duration)) return null
  const at = 8 + (flags & TFHD.base ? 8 : 0) + (flags & TFHD.description ? 4 : 0)
  return tfhd.length >= at + 4 ? tfhd.readUInt32BE(at) : null
}

function trackRun(trun: Buffer, fallback: number): { ticks: number; frames: number } {
  if (trun.length < 8) return { ticks: 0, frames: 0 }
  const flags = trun.readUInt32BE(0) & 0xffffff
  const count = trun.readUInt32BE(4)
  if (!(flags & TRUN.duration)) return { ticks: count * fallback, frames: count }
  const perSample = [TRUN.duration, TRUN.size, TRUN.flags, TRUN.offset].filter((bit) => flags & bit).length * 4
  let at = 8 + (flags & TRUN.dataOffset ? 4 : 0) + (flags & TRUN.firstFlags ? 4 : 0)
  let ticks = 0
  let frames = 0
  for (; frames < count && at + perSample <= trun.length; frames++, at += perSample) ticks += trun.readUInt32BE(at)
  return { ticks, frames }
}
