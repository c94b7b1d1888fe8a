/** Serves a file from disk: conditional, in ranges, and streamed with backpressure in one chunk of memory per client. */
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { ApiError, unreadable } from '../errors.ts'
import { isNotModified, isRangeCurrent, type Validators } from './conditional.ts'
import { httpDate } from './dates.ts'
import { disposition } from './disposition.ts'
import type { Exchange } from './exchange.ts'
import { FileStream } from './file-stream.ts'
import type { Gate } from './gate.ts'
import type { HttpLimits } from './limits.ts'
import { parseRange } from './range.ts'
import type { FileReply } from './route.ts'
import { BINARY_CSP } from './security-headers.ts'

export async function sendFile(exchange: Exchange, reply: FileReply, limits: HttpLimits, streams: Gate): Promise<void> {
  const file = await (typeof reply.source === 'string' ? openFile(reply.source) : reply.source())
  try {
    await answer(exchange, reply, file, limits, streams)
  } finally {
    await file.close()
  }
}

async function answer(exchange: Exchange, reply: FileReply, file: FileHandle, limits: HttpLimits, streams: Gate): Promise<void> {
  const stat = await file.stat({ bigint: true })
  if (!stat.isFile()) throw missing()
  const size = Number(stat.size)
  const validators = {
    etag: `"${stat.ino.toString(36)}-${stat.size.toString(36)}-${stat.mtimeNs.toString(36)}"`,
    modifiedMs: Number(stat.mtimeMs),
  }
  const headers: Record<string, string> = {
    ETag: validators.etag,
    'Last-Modified': httpDate(validators.modifiedMs),
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'private, no-cache',
    'Content-Security-Policy': BINARY_CSP,
  }
  if (isNotModified(exchange.conditions, validators)) return exchange.sendHead(304, headers)

  headers['Content-Type'] = reply.type
  const { filename, attachment = false } = reply.options
  if (filename !== undefined || attachment) headers['Content-Disposition'] = disposition(attachment, filename)
  // RFC 9110 defines ranges for GET only.
  if (exchange.isHead) return exchange.sendHead(200, { ...headers, 'Content-Length': String(size) })

  const stream = async (start: number, length: number, status: number): Promise<void> => {
    streams.enter(exchange.client.key)
    try {
      await new FileStream(exchange, file, start, length, limits).send(status, headers)
    } finally {
      streams.leave(exchange.client.key)
    }
  }
  const range = wanted(exchange, validators, size)
  if (range === 'unsatisfiable') {
    throw new ApiError('RANGE_NOT_SATISFIABLE', `The file has ${size} bytes`, 'range', { 'Content-Range': `bytes */${size}` })
  }
  if (range === 'whole') {
    if (size === 0) return exchange.send(200, headers, '')
    return stream(0, size, 200)
  }
  headers['Content-Range'] = `bytes ${range.start}-${range.end}/${size}`
  return stream(range.start, range.end - range.start + 1, 206)
}

function wanted({ conditions }: Exchange, validators: Validators, size: number): ReturnType<typeof parseRange> {
  return isRangeCurrent(conditions.ifRange, validators) ? parseRange(conditions.range, size) : 'whole'
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    // Without O_NONBLOCK a named pipe would hold a thread of the pool until somebody writes into it.
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ENXIO' || code === 'ENAMETOOLONG') throw missing()
    if (code === 'EACCES' || code === 'EPERM') throw unreadable()
    throw error
  }
}

function missing(): ApiError {
  return new ApiError('FILE_NOT_FOUND', 'The file does not exist')
}
