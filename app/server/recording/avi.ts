/**
 * Reads the AVI files that the recorder writes (RIFF with one `movi` list; OpenDML files, which go on in `RIFF AVIX`, are understood too), to
 * learn how long they play, and mends what a crash has torn: the tail behind the last whole chunk goes, index, sizes and counts are
 * written. Only headers and the first bytes of a picture are read, never the media.
 */
import { type FileHandle, open } from 'node:fs/promises'
import { type AviStream, type Chunk, fourcc, type Header, readHeader } from './avi-header.ts'
import { BlockReader } from './blocks.ts'

export interface AviSummary {
  /** Milliseconds of video. */
  readonly durationMs: number
  readonly frames: number
  readonly width: number
  readonly height: number
}

/** A day at 60 frames and 60 sound chunks a second fits; a file of more has been made to tire us. */
const MAX_CHUNKS = 12_000_000
/** Index entries that are written: 64 MB. A longer file plays without. */
const MAX_INDEXED = 4_000_000
const MAX_RIFFS = 4096
const HAS_INDEX = 0x10
const KEY_FRAME = 0x10
const ENTRY_BYTES = 16
/** Enough of a picture to meet its first slice. */
const PICTURE_HEAD = 512

/** Of a file that was closed in order: its sizes fit together and its header tells the duration. Null for any other. */
export async function readFinishedAvi(path: string): Promise<AviSummary | null> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const reader = new BlockReader(file)
    const header = await readHeader(reader, size)
    if (!header?.movi || !(await isWhole(reader, size, header.movi))) return null
    return summary(header, header.totalFrames)
  } finally {
    await file.close()
  }
}

/** Mends the file and tells what plays; null, and the file stays as it is, when there is no picture in it. */
export async function repairAvi(path: string): Promise<AviSummary | null> {
  const file = await open(path, 'r+')
  try {
    const { size } = await file.stat()
    const reader = new BlockReader(file)
    const header = await readHeader(reader, size)
    if (!header?.movi) return null
    const scan = await new Scan(reader, header, size).run()
    const found = summary(header, scan.frames)
    if (found) await mend(file, header, scan)
    return found
  } finally {
    await file.close()
  }
}

function summary({ video, width, height }: Header, frames: number): AviSummary | null {
  if (frames <= 0 || video.scale <= 0 || video.rate <= 0) return null
  const durationMs = Math.round((frames * video.scale * 1000) / video.rate)
  return durationMs > 0 && Number.isSafeInteger(durationMs) ? { durationMs, frames, width, height } : null
}

/** Every RIFF ends where the next begins, the last one at the end of the file, and the first holds an index behind its `movi`. */
async function isWhole(reader: BlockReader, size: number, movi: Chunk): Promise<boolean> {
  const index = await chunkAt(reader, movi.end)
  if (movi.size <= 4 || index?.id !== 'idx1') return false
  let offset = 0
  for (let count = 0; offset < size; count++) {
    const riff = await chunkAt(reader, offset)
    if (riff?.id !== 'RIFF' || count > MAX_RIFFS || riff.end > size) return false
    if (count === 0 && index.end > riff.end) return false
    offset = riff.end
  }
  return offset === size
}

interface Riff {
  readonly start: number
  /** Of its `movi` list: where the list's own header lies, and the end of its last whole chunk. */
  readonly movi: number
  end: number
}

/** One pass over the chunks of every `movi`. */
class Scan {
  frames = 0
  /** Behind the last whole chunk. */
  end = 0
  readonly riffs: Riff[] = []
  readonly lengths: number[]
  /** Of the first RIFF, ready to be written; null: too many. */
  index: Buffer | null = Buffer.alloc(64 * 1024)
  indexed = 0
  private chunks = 0

  constructor(
    private readonly reader: BlockReader,
    private readonly header: Header,
    private readonly size: number,
  ) {
    this.lengths = header.streams.map(() => 0)
  }

  async run(): Promise<this> {
    const { movi } = this.header
    if (!movi) return this
    for (let start = 0, list: number | null = movi.start - 8; list !== null; ) {
      const riff: Riff = { start, movi: list, end: list + 12 }
      this.riffs.push(riff)
      const next: number = await this.list(riff)
      start = next
      list = this.riffs.length < MAX_RIFFS ? await this.nextList(next) : null
    }
    return this
  }

  /** Returns where the next RIFF would begin. */
  private async list(riff: Riff): Promise<number> {
    let offset = riff.movi + 12
    this.end = offset
    for (;;) {
      const chunk = await chunkAt(this.reader, offset)
      if (!chunk || this.chunks >= MAX_CHUNKS) return offset
      // A group of chunks is looked into, and never counted as a whole.
      if (chunk.id === 'LIST' && (await this.typeAt(chunk.start)) === 'rec ') {
        this.chunks += 1
        offset += 12
        continue
      }
      if (chunk.id === 'idx1') return chunk.end
      const known = await this.count(chunk, riff)
      if (!known || chunk.start + chunk.size > this.size) return offset
      // The padding of the last chunk may be torn off; it holds nothing.
      offset = chunk.end
      riff.end = Math.min(offset, this.size)
      this.end = riff.end
    }
  }

  private async nextList(offset: number): Promise<number | null> {
    const riff = await chunkAt(this.reader, offset)
    if (riff?.id !== 'RIFF' || (await this.typeAt(riff.start)) !== 'AVIX') return null
    const list = await chunkAt(this.reader, riff.start + 4)
    return list?.id === 'LIST' && (await this.typeAt(list.start)) === 'movi' ? list.start - 8 : null
  }

  private async typeAt(offset: number): Promise<string> {
    return fourcc(await this.reader.read(offset, 4), 0)
  }

  /** Takes a chunk into account when it is whole; false: no chunk of such a file. */
  private async count(chunk: Chunk, riff: Riff): Promise<boolean> {
    this.chunks += 1
    if (chunk.id === 'JUNK' || /^ix\d\d$/.test(chunk.id)) return true
    const number = /^(\d\d)(?:d[bc]|wb|tx|pc)$/.exec(chunk.id)?.[1]
    const stream = number === undefined ? undefined : this.header.streams[Number(number)]
    if (!stream) return false
    if (chunk.start + chunk.size > this.size) return true
    const at = Number(number)
    const units = stream.sampleSize > 0 ? Math.floor(chunk.size / stream.sampleSize) : 1
    this.lengths[at] = (this.lengths[at] ?? 0) + units
    if (stream === this.header.video) this.frames += 1
    if (riff.start === 0) this.enter(chunk, await this.isKey(chunk, stream), riff)
    return true
  }

  private async isKey(chunk: Chunk, stream: AviStream): Promise<boolean> {
    if (stream.type !== 'vids' || stream.handler !== 'H264') return chunk.size > 0
    return isKeyPicture(await this.reader.read(chunk.start, Math.min(chunk.size, PICTURE_HEAD)))
  }

  private enter(chunk: Chunk, key: boolean, riff: Riff): void {
    if (!this.index) return
    if (this.indexed >= MAX_INDEXED) {
      this.index = null
      return
    }
    const at = this.indexed * ENTRY_BYTES
    if (at + ENTRY_BYTES > this.index.length) this.index = Buffer.concat([this.index, Buffer.alloc(this.index.length)])
    this.index.write(chunk.id, at, 'latin1')
    this.index.writeUInt32LE(key ? KEY_FRAME : 0, at + 4)
    this.index.writeUInt32LE((chunk.start - 8 - (riff.movi + 8)) >>> 0, at + 8)
    this.index.writeUInt32LE(chunk.size, at + 12)
    this.indexed += 1
  }
}

/** The first slice of an H.264 access unit (byte stream) belongs to an IDR picture. */
function isKeyPicture(head: Buffer): boolean {
  for (let at = 0; at + 3 < head.length; at++) {
    if (head[at] !== 0 || head[at + 1] !== 0 || head[at + 2] !== 1) continue
    const type = (head[at + 3] ?? 0) & 0x1f
    if (type === 5 || type === 7) return true
    if (type === 1) return false
  }
  return false
}

async function chunkAt(reader: BlockReader, offset: number): Promise<Chunk | null> {
  const head = await reader.read(offset, 8)
  if (head.length < 8) return null
  const size = head.readUInt32LE(4)
  return { id: fourcc(head, 0), start: offset + 8, size, end: offset + 8 + size + (size & 1) }
}

/**
 * Data before the header, each step synced: a crash in between leaves a file that is mended again. What grows is the index alone, and where
 * the disk is too full for it, players do without.
 */
async function mend(file: FileHandle, header: Header, scan: Scan): Promise<void> {
  const [first, ...others] = scan.riffs
  if (!first) return
  // Chunks are even: what is torn off is at most the padding of the last one.
  const end = scan.end + (scan.end & 1)
  await file.truncate(end)
  const indexed = others.length === 0 && scan.index !== null && (await appendIndex(file, end, scan.index, scan.indexed))
  await file.datasync()
  const size = (await file.stat()).size
  const write = (value: number, offset: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32LE(Math.min(value, 0xffffffff), 0)
    return file.write(bytes, 0, 4, offset)
  }
  for (const [i, riff] of scan.riffs.entries()) {
    const next = scan.riffs[i + 1]
    await write((next?.start ?? size) - riff.start - 8, riff.start + 4)
    if (!next) await write(end - riff.movi - 8, riff.movi + 4)
  }
  const flags = header.flags & ~HAS_INDEX
  await write(indexed || others.length > 0 ? flags | HAS_INDEX : flags, header.avih + 12)
  await write(scan.frames, header.avih + 16)
  for (const [i, { strh }] of header.streams.entries()) await write(scan.lengths[i] ?? 0, strh + 32)
  if (header.dmlh !== null) await write(scan.frames, header.dmlh)
  await file.datasync()
}

async function appendIndex(file: FileHandle, at: number, index: Buffer, entries: number): Promise<boolean> {
  const bytes = entries * ENTRY_BYTES
  const head = Buffer.alloc(8)
  head.write('idx1', 0, 'latin1')
  head.writeUInt32LE(bytes, 4)
  const whole = Buffer.concat([head, index.subarray(0, bytes)])
  try {
    for (let written = 0; written < whole.length; ) {
      written += (await file.write(whole, written, whole.length - written, at + written)).bytesWritten
    }
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    await file.truncate(at)
    return false
  }
}
