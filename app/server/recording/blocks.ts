/** Bounded reads of a media file. */
import type { FileHandle } from 'node:fs/promises'

const BLOCK_BYTES = 8192

/** Reads ahead: headers and small tables that lie together cost one read of the disk. */
export class BlockReader {
  private readonly block = Buffer.alloc(BLOCK_BYTES)
  private start = 0
  private length = 0

  constructor(private readonly file: FileHandle) {}

  /** Fewer bytes at the end of the file. Valid until the next call. */
  async read(offset: number, bytes: number): Promise<Buffer> {
    if (bytes > BLOCK_BYTES) {
      const large = Buffer.alloc(bytes)
      const { bytesRead } = await this.file.read(large, 0, bytes, offset)
      return large.subarray(0, bytesRead)
    }
    if (offset < this.start || offset + bytes > this.start + this.length) {
      this.start = offset
      this.length = (await this.file.read(this.block, 0, BLOCK_BYTES, offset)).bytesRead
    }
    return this.block.subarray(offset - this.start, Math.min(this.length, offset - this.start + bytes))
  }
}
