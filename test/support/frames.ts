/** Reads the frame numbers that the test picture carries as a barcode (see "Test picture" in app/media/PROTOCOL.md). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

const CELLS = 34
const PROBE = 4

/** Side of a barcode cell in a picture of this width. */
export function cellSize(width: number): number {
  return Math.max(8, Math.floor(width / 40 / 2) * 2)
}

export interface FramesOptions {
  readonly input: string
  /** Options of ffmpeg before `-i`. */
  readonly before?: readonly string[]
  /** Options behind `-i`, such as `-frames:v 90`. */
  readonly after?: readonly string[]
  /** Width of the picture as it was captured, and as it arrives. */
  readonly captured?: number
  readonly width?: number
  readonly signal?: AbortSignal
}

/** Decodes the input with ffmpeg and returns each picture's number, null where there is none. */
export async function readFrameNumbers(options: FramesOptions): Promise<(number | null)[]> {
  const captured = options.captured ?? 1280
  const scale = (options.width ?? captured) / captured
  const cell = cellSize(captured) * scale
  // Only the barcode's row is handed over, one block of PROBE x PROBE pixels a cell.
  const row = `crop=${CELLS * cell}:${cell}:${cell}:${cell}:exact=1,scale=${CELLS * PROBE}:${PROBE}:flags=area`
  const args = ['-v', 'error', '-nostdin', ...(options.before ?? []), '-i', options.input, ...(options.after ?? [])]
  const ffmpeg = spawn('ffmpeg', [...args, '-fps_mode', 'passthrough', '-vf', row, '-pix_fmt', 'gray', '-f', 'rawvideo', '-'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(options.signal ? { signal: options.signal, killSignal: 'SIGINT' } : {}),
  })
  ffmpeg.on('error', () => undefined)
  let complaint = ''
  ffmpeg.stderr.on('data', (text) => {
    complaint += text
  })
  const numbers: (number | null)[] = []
  let rest: Buffer = Buffer.alloc(0)
  ffmpeg.stdout.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const size = CELLS * PROBE * PROBE
    for (; rest.length >= size; rest = rest.subarray(size)) numbers.push(readBarcode(rest))
  })
  await once(ffmpeg, 'close')
  if (numbers.length === 0) throw new Error(`ffmpeg delivered no picture: ${complaint}`)
  return numbers
}

function readBarcode(row: Buffer): number | null {
  const level = (cell: number) => row[Math.floor(PROBE / 2) * CELLS * PROBE + cell * PROBE + Math.floor(PROBE / 2)] ?? 0
  const white = level(0)
  const black = level(1)
  if (white - black < 60) return null
  let number = 0
  for (let cell = 2; cell < CELLS; cell++) number = number * 2 + (level(cell) > (white + black) / 2 ? 1 : 0)
  return number
}

/** Where the sequence is not one after the other, in words; empty when it is whole. */
export function gaps(numbers: readonly (number | null)[]): string[] {
  const found: string[] = []
  for (let i = 1; i < numbers.length; i++) {
    const before = numbers[i - 1]
    const now = numbers[i]
    if (now === null || before === null) found.push(`picture ${i}: no number`)
    else if (now !== undefined && before !== undefined && now !== before + 1) found.push(`picture ${i}: ${before} then ${now}`)
  }
  return found
}
